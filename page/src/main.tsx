import { render } from "preact";
import { readToken, signIn } from "./api/session";
import { App } from "./app";
import { startKeys } from "./keys";
import { dropOldDrafts } from "./question/drafts";
import { followLink } from "./route";

dropOldDrafts();
startKeys();
addEventListener("click", followLink);
addEventListener("storage", (e) => e.key === "graphd.left" && location.reload()); // the person has signed out in another tab
const token = readToken();
void (token ? import("./extras").then((e) => e.signInByLink(token)) : signIn());
render(<App />, document.getElementById("root")!);

export * from "./shared";

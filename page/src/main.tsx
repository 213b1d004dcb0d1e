import { render } from "preact";
import { signIn, takeToken } from "./api/session";
import { App } from "./app";
import { startKeys } from "./keys";
import { dropOldDrafts } from "./question/drafts";
import { followLink } from "./route";

takeToken();
dropOldDrafts();
startKeys();
addEventListener("click", followLink);
void signIn();
render(<App />, document.getElementById("root")!);

export * from "./shared";

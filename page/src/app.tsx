// The frame of the page: the navigation, the screen of the address, and what stands above all screens.

import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { session, signIn, type Session } from "./api/session";
import { useStore } from "./api/store";
import { InboxScreen } from "./inbox/inbox";
import { useKeys } from "./keys";
import { Navigation } from "./navigation";
import { addressOf, navigate, route, type Route, type Screen } from "./route";
import { useLater } from "./ui/later";
import { ToastView } from "./ui/toast";

type ScreenComponent = FunctionComponent<{ route: Route }>;

// What besides the inbox is shown is loaded when it is opened, each screen by itself.
const screens: Record<Exclude<Screen, "inbox"> | "thread", () => Promise<ScreenComponent>> = {
  threads: async () => (await import("./thread/list")).ThreadList,
  thread: async () => (await import("./thread/screen")).ThreadScreen,
  graphs: async () => (await import("./graphs/screen")).GraphsScreen,
  workers: async () => (await import("./workers/screen")).WorkersScreen,
  overview: async () => (await import("./overview/screen")).OverviewScreen,
};

export function App(): ComponentChildren {
  const at = useStore(route);
  const who = useStore(session);
  const [sheet, setSheet] = useState<"keys" | "palette" | undefined>(undefined);
  const extras = useLater(sheet !== undefined || who.state === "signed-out", () => import("./extras"));
  useKeys([
    { keys: ["g i"], about: "inbox", run: () => navigate(addressOf("inbox")) },
    { keys: ["g t"], about: "threads", run: () => navigate(addressOf("threads")) },
    { keys: ["g g"], about: "graphs", run: () => navigate(addressOf("graphs")) },
    { keys: ["g w"], about: "workers", run: () => navigate(addressOf("workers")) },
    { keys: ["g o"], about: "overview", run: () => navigate(addressOf("overview")) },
    { keys: ["?"], about: "these keys", run: () => setSheet("keys") },
    { keys: ["Mod+K"], about: "find or do", run: () => setSheet("palette") },
  ]);
  const hasBegun = useHasBegun(who);
  return (
    <div class="app">
      <a class="skip" href="#content">Skip to the content</a>
      <Navigation route={at} find={() => setSheet("palette")} />
      <main id="content" class="content" tabIndex={-1}>
        {hasBegun ? <ScreenOf route={at} /> : who.state === "unreachable" && <Unreachable />}
      </main>
      {extras && who.state === "signed-out" && <extras.SignIn message={who.message} />}
      {extras && sheet === "keys" && <extras.KeySheet close={() => setSheet(undefined)} />}
      {extras && sheet === "palette" && <extras.Palette close={() => setSheet(undefined)} />}
      <ToastView />
    </div>
  );
}

/** Tells whether the caller was known once: what is typed stays when the session ends. */
function useHasBegun(who: Session): boolean {
  const [hasBegun, setBegun] = useState(false);
  if (who.state === "signed-in" && !hasBegun) setBegun(true);
  return hasBegun || who.state === "signed-in";
}

function ScreenOf({ route: at }: { route: Route }): ComponentChildren {
  const [loaded, setLoaded] = useState<Record<string, ScreenComponent>>({ inbox: InboxScreen });
  const name = at.screen === "threads" && at.path[0] ? "thread" : at.screen;
  const Component = loaded[name];
  useEffect(() => {
    if (name !== "inbox" && !Component) void screens[name]().then((screen) => setLoaded((all) => ({ ...all, [name]: screen })));
  }, [name]);
  return Component ? <Component route={at} /> : null;
}

function Unreachable(): ComponentChildren {
  useEffect(() => {
    const timer = setInterval(() => void signIn(), 2000);
    return () => clearInterval(timer);
  }, []);
  return <div class="empty"><b>The server can’t be reached</b><p>The page tries again by itself.</p></div>;
}

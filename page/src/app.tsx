// The frame of the page: the navigation, the screen of the address, and what stands above all screens.

import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { session, signIn, type Session } from "./api/session";
import { useStore } from "./api/store";
import { InboxScreen } from "./inbox/inbox";
import { useKeys } from "./keys";
import { Navigation } from "./navigation";
import { addressOf, navigate, route, type Route, type Screen } from "./route";
import { ToastView } from "./ui/toast";

type ScreenComponent = FunctionComponent<{ route: Route }>;

/** Returns the screens besides the inbox: they are loaded when one of them is opened. */
async function loadScreens(): Promise<Record<Exclude<Screen, "inbox">, ScreenComponent>> {
  const all = await import("./screens");
  return { threads: all.ThreadsScreen, graphs: all.GraphsScreen, workers: all.WorkersScreen, overview: all.OverviewScreen };
}

export function App(): ComponentChildren {
  const at = useStore(route);
  const who = useStore(session);
  const [sheet, setSheet] = useState<"keys" | "palette" | undefined>(undefined);
  const extras = useExtras(sheet !== undefined || who.state === "signed-out");
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

/** Returns what is loaded when it is needed for the first time. */
function useExtras(isNeeded: boolean): typeof import("./extras") | undefined {
  const [extras, setExtras] = useState<typeof import("./extras") | undefined>(undefined);
  useEffect(() => {
    if (isNeeded && !extras) void import("./extras").then(setExtras);
  }, [isNeeded]);
  return extras;
}

function ScreenOf({ route: at }: { route: Route }): ComponentChildren {
  const [loaded, setLoaded] = useState<Partial<Record<Screen, ScreenComponent>>>({ inbox: InboxScreen });
  const Component = loaded[at.screen];
  useEffect(() => {
    if (!Component) void loadScreens().then((screens) => setLoaded((all) => ({ ...all, ...screens })));
  }, [at.screen]);
  return Component ? <Component route={at} /> : null;
}

function Unreachable(): ComponentChildren {
  useEffect(() => {
    const timer = setInterval(() => void signIn(), 2000);
    return () => clearInterval(timer);
  }, []);
  return <div class="empty"><b>The server can’t be reached</b><p>The page tries again by itself.</p></div>;
}

// The frame of the page: the navigation, the screen of the address, and what stands above all screens.

import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { session, signIn, type Session } from "./api/session";
import { useStore } from "./api/store";
import { InboxScreen } from "./inbox/inbox";
import { useKeys } from "./keys";
import { Navigation } from "./navigation";
import { addressOf, navigate, route, type Route, type Screen } from "./route";
import { KeySheet } from "./ui/key_sheet";
import { ToastView } from "./ui/toast";
import { SignIn } from "./sign_in";

type ScreenComponent = FunctionComponent<{ route: Route }>;

/** Returns the screens besides the inbox: they are loaded when one of them is opened. */
async function loadScreens(): Promise<Record<Exclude<Screen, "inbox">, ScreenComponent>> {
  const all = await import("./screens");
  return { threads: all.ThreadsScreen, graphs: all.GraphsScreen, workers: all.WorkersScreen, overview: all.OverviewScreen };
}

export function App(): ComponentChildren {
  const at = useStore(route);
  const who = useStore(session);
  const [isHelpOpen, setHelpOpen] = useState(false);
  useKeys([
    { keys: ["g i"], about: "inbox", run: () => navigate(addressOf("inbox")) },
    { keys: ["g t"], about: "threads", run: () => navigate(addressOf("threads")) },
    { keys: ["g g"], about: "graphs", run: () => navigate(addressOf("graphs")) },
    { keys: ["g w"], about: "workers", run: () => navigate(addressOf("workers")) },
    { keys: ["g o"], about: "overview", run: () => navigate(addressOf("overview")) },
    { keys: ["?"], about: "these keys", run: () => setHelpOpen(true) },
  ]);
  const hasBegun = useHasBegun(who);
  return (
    <div class="app">
      <a class="skip" href="#content">Skip to the content</a>
      <Navigation screen={at.screen} />
      <main id="content" class="content" tabIndex={-1}>
        {hasBegun ? <ScreenOf route={at} /> : who.state === "unreachable" && <Unreachable />}
      </main>
      {who.state === "signed-out" && <SignIn message={who.message} />}
      {isHelpOpen && <KeySheet close={() => setHelpOpen(false)} />}
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

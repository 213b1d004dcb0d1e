// The navigation: screens, saved filters, who I am, and whether the page is up to date.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { canSignOut, noteError, session } from "./api/session";
import { useStore } from "./api/store";
import { addressOf, type Route, type Screen } from "./route";
import { Text } from "./text/marks";
import { shortName } from "./text/people";
import { formatCount, formatMoment } from "./text/time";
import { Icon, Logo, type IconName } from "./ui/icons";
import { Key } from "./ui/key";
import { Avatar } from "./ui/people";
import { countOpen, openCounts } from "./inbox/counts";
import { savedViews, saveViews } from "./inbox/views";
import { connection } from "./api/connection";

const screens: readonly { screen: Screen; title: string; icon: IconName; key: string }[] = [
  { screen: "inbox", title: "Inbox", icon: "inbox", key: "G I" },
  { screen: "threads", title: "Threads", icon: "threads", key: "G T" },
  { screen: "graphs", title: "Graphs", icon: "graphs", key: "G G" },
  { screen: "workers", title: "Workers", icon: "workers", key: "G W" },
  { screen: "overview", title: "Overview", icon: "overview", key: "G O" },
];

const titles: Record<string, string> = { "due:<1h": "Due within the hour", "priority:urgent": "Urgent" };

export function Navigation({ route, find }: { route: Route; find: () => void }): ComponentChildren {
  const { screen } = route;
  const who = useStore(session);
  const views = useStore(savedViews);
  const counts = useStore(openCounts);
  useEffect(() => {
    if (who.state === "signed-in") countOpen(views).catch(noteError);
  }, [who.state, views, screen]);
  return (
    <nav aria-label="Screens">
      <a class="brand" href="/inbox" aria-label="graphd"><Logo /><strong>graphd</strong></a>
      <button type="button" class="find" title="Find or do" onClick={find}><Icon name="search" size={14} /><span>Find or do…</span><Key of="Mod+K" /></button>
      {screens.map((s) => (
        <a class={s.screen === screen ? "on" : ""} aria-current={s.screen === screen ? "page" : undefined} href={addressOf(s.screen)} title={s.title}>
          <Icon name={s.icon} /><span>{s.title}</span><Key of={s.key} />{s.screen === "inbox" && <Count of={counts[""]} />}
        </a>
      ))}
      <Views route={route} counts={counts} />
      <Me />
    </nav>
  );
}

function Count({ of }: { of: number | undefined }): ComponentChildren {
  return of !== undefined && <small>{formatCount(of)}</small>;
}

/** Filters that are kept in this browser. */
function Views({ route, counts }: { route: Route; counts: Readonly<Record<string, number>> }): ComponentChildren {
  const views = useStore(savedViews);
  const q = route.query.get("q") ?? "";
  const isSaved = views.some((v) => v === q);
  return (
    <>
      {(views.length > 0 || (q !== "" && route.screen === "inbox")) && <h2>Views</h2>}
      {views.map((v) => (
        <a class={"view" + (v === q && route.screen === "inbox" ? " on" : "")} href={addressOf("inbox", [], { q: v })}><span><Text of={titles[v] ?? v} /></span><Count of={counts[v]} /></a>
      ))}
      {q !== "" && route.screen === "inbox" && (
        <button type="button" class="ghost view" onClick={() => saveViews(isSaved ? views.filter((v) => v !== q) : [...views, q])}>{isSaved ? "Forget this filter" : "Keep this filter"}</button>
      )}
    </>
  );
}

function Me(): ComponentChildren {
  const who = useStore(session);
  const link = useStore(connection);
  const caller = who.state === "signed-in" ? who.caller : undefined;
  const state = link === "live" ? "live" : link === "connecting" ? "connecting" : `behind since ${formatMoment(link.since, Date.now())}`;
  return (
    <div class="me">
      {caller?.principal ? (
        <>
          <Avatar principal={caller.principal} size={24} />
          <span><b><Text of={shortName(caller.principal)} /></b><small><Text of={(caller.groups ?? []).join(", ")} /></small></span>
        </>
      ) : (
        <span>{who.state === "signed-in" ? <><b>Everybody</b><small>the server knows no callers</small></> : <b>Not signed in</b>}</span>
      )}
      <span class={"live" + (link === "live" ? "" : " behind")} role="status"><i />{state}</span>
      {caller?.principal && canSignOut(caller.how) && <button type="button" class="icon" aria-label="Sign out" title="Sign out" onClick={() => void import("./extras").then((e) => e.signOut())}><Icon name="cross" size={13} /></button>}
    </div>
  );
}

// The navigation: screens, saved filters, who I am, and whether the page is up to date.

import type { ComponentChildren } from "preact";
import { session, signOut } from "./api/session";
import { useStore } from "./api/store";
import { addressOf, type Screen } from "./route";
import { Text } from "./text/marks";
import { shortName } from "./text/people";
import { formatMoment } from "./text/time";
import { Icon, Logo, type IconName } from "./ui/icons";
import { Key } from "./ui/key";
import { Avatar } from "./ui/people";
import { connection } from "./api/connection";

const screens: readonly { screen: Screen; title: string; icon: IconName; key: string }[] = [
  { screen: "inbox", title: "Inbox", icon: "inbox", key: "G I" },
  { screen: "threads", title: "Threads", icon: "threads", key: "G T" },
  { screen: "graphs", title: "Graphs", icon: "graphs", key: "G G" },
  { screen: "workers", title: "Workers", icon: "workers", key: "G W" },
  { screen: "overview", title: "Overview", icon: "overview", key: "G O" },
];

export function Navigation({ screen }: { screen: Screen }): ComponentChildren {
  return (
    <nav aria-label="Screens">
      <a class="brand" href="/inbox"><Logo /><strong>graphd</strong></a>
      {screens.map((s) => (
        <a class={s.screen === screen ? "on" : ""} aria-current={s.screen === screen ? "page" : undefined} href={addressOf(s.screen)} title={s.title}>
          <Icon name={s.icon} /><span>{s.title}</span><Key of={s.key} />
        </a>
      ))}
      <Me />
    </nav>
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
        <span><b>Everybody</b><small>the server knows no callers</small></span>
      )}
      <span class={"live" + (link === "live" ? "" : " behind")} role="status"><i />{state}</span>
      {caller?.principal && <button type="button" class="icon" aria-label="Sign out" title="Sign out" onClick={signOut}><Icon name="cross" size={13} /></button>}
    </div>
  );
}

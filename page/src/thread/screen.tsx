import type { ComponentChildren } from "preact";
import type { Route } from "../route";

export function ThreadsScreen(_: { route: Route }): ComponentChildren {
  return <main class="page" aria-label="Threads"><h1>Threads</h1></main>;
}

import type { ComponentChildren } from "preact";
import type { Route } from "../route";

export function GraphsScreen(_: { route: Route }): ComponentChildren {
  return <main class="page" aria-label="Graphs"><h1>Graphs</h1></main>;
}

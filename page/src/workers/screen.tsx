import type { ComponentChildren } from "preact";
import type { Route } from "../route";

export function WorkersScreen(_: { route: Route }): ComponentChildren {
  return <main class="page" aria-label="Workers"><h1>Workers</h1></main>;
}

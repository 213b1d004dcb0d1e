import type { ComponentChildren } from "preact";
import type { Route } from "../route";

export function OverviewScreen(_: { route: Route }): ComponentChildren {
  return <section class="page" aria-label="Overview"><h1>Overview</h1></section>;
}

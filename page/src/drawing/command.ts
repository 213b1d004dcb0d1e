// What `graphd graph draw` runs, in a JavaScript engine that has nothing of a browser.

import type { GraphSpec } from "../api/messages";
import { iconOf } from "./node_icon";
import { layoutDiagram } from "./layout";
import { pathOf } from "./path";
import { readDiagram } from "./spec";

// dagre copies lists of lists with it.
globalThis.structuredClone ??= <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** Returns the drawing of a graph as JSON, with the icons of its nodes and the paths of its edges. */
export function draw(spec: string, show: (text: string) => string): string {
  const drawing = layoutDiagram(readDiagram(JSON.parse(spec) as GraphSpec), show);
  return JSON.stringify({
    ...drawing,
    nodes: drawing.nodes.map((n) => ({ ...n, icon: iconOf(n.kind) })),
    edges: drawing.edges.map((e) => ({ ...e, path: pathOf(e.points) })),
  });
}

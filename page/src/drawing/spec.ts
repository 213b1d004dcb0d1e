// The nodes and edges of a graph, as a drawing has them.

import type { GraphSpec, NodeSpec } from "../api/messages";

export type NodeKind = "start" | "end" | "ask" | "remote" | "expr" | "function" | "graph";

export interface DiagramNode {
  name: string;
  kind: NodeKind;
}

export interface DiagramEdge {
  from: string;
  to: string;
  label: string;
  /** A decision, an error or a node's own goto may lead along it. */
  isConditional: boolean;
}

export interface Diagram {
  nodes: readonly DiagramNode[];
  edges: readonly DiagramEdge[];
}

const start = "__start__";
const end = "__end__";
const longestLabel = 40;

/** Reads the nodes and edges of a graph. */
export function readDiagram(spec: GraphSpec): Diagram {
  const specs = spec.nodes ?? [];
  const names = new Set([start, end, ...specs.map((n) => n.name ?? "")]);
  const edges = new Map<string, DiagramEdge>();
  const add = (from: string | undefined, to: string | undefined, label = "", isConditional = false): void => {
    if (!from || !to || !names.has(from) || !names.has(to)) return;
    const key = JSON.stringify([from, to]);
    const known = edges.get(key);
    if (!known) edges.set(key, { from, to, label: shorten(label), isConditional });
    else if (label && known.label && !known.label.split(", ").includes(shorten(label))) edges.set(key, { ...known, label: shorten(`${known.label}, ${label}`) });
  };
  for (const e of spec.edges ?? []) for (const from of e.sources ?? []) add(from, e.target);
  for (const b of spec.branches ?? []) {
    const [from] = [b.source];
    for (const c of b.cases?.cases ?? []) for (const to of c.targets ?? []) add(from, to, c.condition || "else", true);
    for (const [key, to] of Object.entries(b.paths ?? {}).sort(([a], [z]) => (a < z ? -1 : 1))) add(from, to, key, true);
    for (const to of b.targets ?? []) add(from, to, "", true);
    const isOpen = !b.cases && Object.keys(b.paths ?? {}).length === 0 && (b.targets ?? []).length === 0;
    if (isOpen) for (const to of [...specs.map((n) => n.name ?? ""), end]) add(from, to, "", true);
  }
  for (const n of specs) {
    for (const to of n.destinations ?? []) add(n.name, to, "goto", true);
    add(n.name, n.policy?.errorHandler || spec.defaults?.errorHandler, "on error", true);
  }
  for (const n of specs) {
    if (![...edges.values()].some((e) => e.from === n.name && e.label !== "on error") && !goesAnywhere(n)) add(n.name, end);
  }
  return { nodes: [{ name: start, kind: "start" }, ...specs.map((n) => ({ name: n.name ?? "", kind: kindOf(n) })), { name: end, kind: "end" }], edges: [...edges.values()] };
}

function kindOf(n: NodeSpec): NodeKind {
  return n.ask ? "ask" : n.remote ? "remote" : n.graph ? "graph" : n.expr ? "expr" : "function";
}

/** Tells whether a node decides itself where to go, without saying between which nodes. */
function goesAnywhere(n: NodeSpec): boolean {
  return (n.expr?.gotoExpr ?? n.ask?.gotoExpr ?? "") !== "";
}

function shorten(label: string): string {
  const text = label.replaceAll(/\s+/g, " ").trim();
  const letters = [...text];
  return letters.length <= longestLabel ? text : letters.slice(0, longestLabel).join("") + "…";
}

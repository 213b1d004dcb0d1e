// The nodes and edges of a graph, as a drawing has them: those of the Mermaid text of the command line.

import type { BranchSpec, GraphSpec, NodeSpec } from "../api/messages";

export type NodeKind = "start" | "end" | "ask" | "remote" | "expr" | "function" | "graph";

export interface DiagramNode {
  name: string;
  kind: NodeKind;
}

export interface DiagramEdge {
  from: string;
  to: string;
  /** What leads along it, in full: keys, conditions, "goto", "on error". */
  label: string;
  /** A decision, an error or a node's own goto may lead along it. */
  isConditional: boolean;
  /** The join that the edge is a part of: its target waits for all sources of the join. */
  join: number | undefined;
}

export interface Diagram {
  nodes: readonly DiagramNode[];
  edges: readonly DiagramEdge[];
}

const start = "__start__";
const end = "__end__";

/** Reads the nodes and edges of a graph. */
export function readDiagram(spec: GraphSpec): Diagram {
  const specs = spec.nodes ?? [];
  const nodes: DiagramNode[] = [{ name: start, kind: "start" }, ...specs.map((n) => ({ name: nameOf(n), kind: kindOf(n) })), { name: end, kind: "end" }];
  const edges = new EdgeList(nodes.map((n) => n.name));
  for (const e of spec.edges ?? []) edges.addEdge(e.sources ?? [], e.target ?? "");
  for (const b of spec.branches ?? []) addBranch(edges, b, nodes);
  const handlers = handlersOf(spec);
  const busy = busyNodes(spec);
  for (const n of specs) {
    const name = nameOf(n);
    for (const to of n.destinations ?? []) edges.addConditional(name, to, "goto");
    edges.addConditional(name, handlers.get(name) ?? "", "on error");
    if (!busy.has(name) && !goesAnywhere(n)) edges.addEdge([name], end);
  }
  return { nodes, edges: edges.list() };
}

/** The edges so far. Those of one kind between the same nodes are one, with the labels of all. */
class EdgeList {
  readonly #names: ReadonlySet<string>;
  readonly #edges = new Map<string, DiagramEdge>();
  readonly #labels = new Map<string, Set<string>>();
  readonly #joins = new Set<string>();

  constructor(names: readonly string[]) {
    this.#names = new Set(names);
  }

  addEdge(sources: readonly string[], to: string): void {
    const key = JSON.stringify([...sources, to]);
    if (this.#joins.has(key)) return;
    if (sources.length > 1) this.#joins.add(key);
    for (const from of sources) this.#add({ from, to, label: "", isConditional: false, join: sources.length > 1 ? this.#joins.size : undefined });
  }

  addConditional(from: string, to: string, label: string): void {
    this.#add({ from, to, label, isConditional: true, join: undefined });
  }

  list(): DiagramEdge[] {
    return [...this.#edges].map(([key, e]) => ({ ...e, label: [...this.#labels.get(key)!].join(", ") }));
  }

  #add(e: DiagramEdge): void {
    if (!this.#names.has(e.from) || !this.#names.has(e.to)) return;
    const key = JSON.stringify([e.from, e.to, e.isConditional, e.label !== "", e.join ?? 0]);
    const labels = this.#labels.get(key);
    if (labels) {
      labels.add(e.label);
      return;
    }
    this.#edges.set(key, e);
    this.#labels.set(key, new Set([e.label]));
  }
}

function addBranch(edges: EdgeList, b: BranchSpec, nodes: readonly DiagramNode[]): void {
  const from = b.source ?? "";
  for (const c of b.cases?.cases ?? []) for (const to of c.targets ?? []) edges.addConditional(from, to, c.condition || "else");
  const paths = Object.entries<string>(b.paths ?? {}).sort(([a], [z]) => (a < z ? -1 : 1));
  for (const [key, to] of paths) edges.addConditional(from, to, key);
  for (const to of b.targets ?? []) edges.addConditional(from, to, "");
  if (b.cases || paths.length > 0 || (b.targets ?? []).length > 0) return;
  for (const n of nodes) if (n.kind !== "start") edges.addConditional(from, n.name, "");
}

/** Returns the error handler of each node that has one. That of the graph is not for nodes that are handlers. */
function handlersOf(spec: GraphSpec): Map<string, string> {
  const common = spec.defaults?.errorHandler ?? "";
  const handlers = new Map<string, string>();
  for (const n of spec.nodes ?? []) if (n.policy?.errorHandler) handlers.set(nameOf(n), n.policy.errorHandler);
  const are = new Set([common, ...handlers.values()]);
  for (const n of spec.nodes ?? []) if (common && !handlers.has(nameOf(n)) && !are.has(nameOf(n))) handlers.set(nameOf(n), common);
  return handlers;
}

/** Returns the nodes after which something follows, or may. */
function busyNodes(spec: GraphSpec): Set<string> {
  return new Set([
    ...(spec.edges ?? []).flatMap((e) => e.sources ?? []),
    ...(spec.branches ?? []).map((b) => b.source ?? ""),
    ...(spec.nodes ?? []).filter((n) => (n.destinations ?? []).length > 0).map(nameOf),
  ]);
}

function nameOf(n: NodeSpec): string {
  return n.name ?? "";
}

function kindOf(n: NodeSpec): NodeKind {
  return n.ask ? "ask" : n.remote ? "remote" : n.graph ? "graph" : n.expr ? "expr" : "function";
}

/** Tells whether the node's own work may choose any next node. */
function goesAnywhere(n: NodeSpec): boolean {
  const kind = kindOf(n);
  return kind === "function" || kind === "remote" || (n.expr?.gotoExpr ?? n.ask?.gotoExpr ?? "") !== "";
}

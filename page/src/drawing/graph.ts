// The graphs that dagre works on, in the place of those of @dagrejs/graphlib: what it uses of them. Their
// nodes and edges must have the same order, because drawings depend on it.

interface Edge {
  v: string;
  w: string;
  name?: string | undefined;
}

/** What dagre keeps of a node, an edge or a graph. */
type Label = any;

const top = "\0"; // what dagre calls the parent of all nodes

export class Graph {
  private label: Label;
  private readonly isUndirected: boolean;
  private readonly all = new Map<string, NodeRecord>();
  private readonly allEdges = new Map<string, { edge: Edge; label: Label }>();
  private readonly childrenOf = new Map<string, string[]>();
  private labelOf: (v: string) => Label = () => undefined;

  constructor(options?: { directed?: boolean }) {
    this.isUndirected = options?.directed === false;
  }

  isMultigraph(): boolean {
    return true;
  }

  setGraph(label: Label): this {
    this.label = label;
    return this;
  }

  graph(): Label {
    return this.label;
  }

  setDefaultNodeLabel(labelOf: (v: string) => Label): this {
    this.labelOf = labelOf;
    return this;
  }

  nodeCount(): number {
    return this.all.size;
  }

  nodes(): string[] {
    return [...this.all.keys()];
  }

  sources(): string[] {
    return this.nodes().filter((v) => this.all.get(v)!.in.size === 0);
  }

  setNode(v: string, label?: Label): this {
    const known = this.all.get(v);
    if (!known) this.all.set(v, { label: label ?? this.labelOf(v), in: new Map(), out: new Map(), predecessors: new Map(), successors: new Map() });
    else if (label !== undefined) known.label = label;
    return this;
  }

  node(v: string): Label {
    return this.all.get(v)?.label;
  }

  hasNode(v: string): boolean {
    return this.all.has(v);
  }

  removeNode(v: string): this {
    for (const e of this.nodeEdges(v) ?? []) this.removeEdge(e);
    this.all.delete(v);
    return this;
  }

  parent(): undefined {
    return undefined; // of a graph without clusters
  }

  setParent(v: string, parent: string): this {
    this.childrenOf.set(parent, [...this.children(parent), v]);
    return this;
  }

  children(v: string): string[] {
    return v === top ? this.nodes() : this.childrenOf.get(v) ?? [];
  }

  predecessors(v: string): string[] | undefined {
    return keysOf(this.all.get(v)?.predecessors);
  }

  successors(v: string): string[] | undefined {
    return keysOf(this.all.get(v)?.successors);
  }

  neighbors(v: string): string[] {
    return [...new Set([...this.predecessors(v)!, ...this.successors(v)!])];
  }

  edges(): Edge[] {
    return [...this.allEdges.values()].map(({ edge }) => edge);
  }

  setEdge(edge: Edge, label: Label): this;
  setEdge(v: string, w: string, label: Label, name?: string): this;
  setEdge(first: Edge | string, second: Label, third?: Label, name?: string): this {
    const [edge, label] = typeof first === "string" ? [this.edgeOf(first, second, name), third] : [this.edgeOf(first.v, first.w, first.name), second];
    const key = keyOf(edge);
    const known = this.allEdges.get(key);
    if (known) {
      known.label = label;
      return this;
    }
    this.setNode(edge.v).setNode(edge.w);
    this.allEdges.set(key, { edge, label });
    const [from, to] = [this.all.get(edge.v)!, this.all.get(edge.w)!];
    from.out.set(key, edge);
    to.in.set(key, edge);
    count(from.successors, edge.w, 1);
    count(to.predecessors, edge.v, 1);
    return this;
  }

  edge(first: Edge | string, w?: string, name?: string): Label {
    return this.allEdges.get(this.findKey(first, w, name))?.label;
  }

  hasEdge(first: Edge | string, w?: string, name?: string): boolean {
    return this.allEdges.has(this.findKey(first, w, name));
  }

  removeEdge(first: Edge | string, w?: string, name?: string): this {
    const key = this.findKey(first, w, name);
    const known = this.allEdges.get(key);
    if (!known) return this;
    const { edge } = known;
    const [from, to] = [this.all.get(edge.v)!, this.all.get(edge.w)!];
    this.allEdges.delete(key);
    from.out.delete(key);
    to.in.delete(key);
    count(from.successors, edge.w, -1);
    count(to.predecessors, edge.v, -1);
    return this;
  }

  inEdges(v: string): Edge[] | undefined {
    return valuesOf(this.all.get(v)?.in);
  }

  outEdges(v: string): Edge[] | undefined {
    return valuesOf(this.all.get(v)?.out);
  }

  nodeEdges(v: string): Edge[] | undefined {
    const node = this.all.get(v);
    return node && valuesOf(new Map([...node.in, ...node.out]));
  }

  /** Returns an edge; one without a direction begins at the lesser node. */
  private edgeOf(v: string, w: string, name: string | undefined): Edge {
    return this.isUndirected && v > w ? { v: w, w: v, name } : { v, w, name };
  }

  private findKey(first: Edge | string, w: string | undefined, name: string | undefined): string {
    return keyOf(typeof first === "string" ? this.edgeOf(first, w!, name) : first);
  }
}

interface NodeRecord {
  label: Label;
  in: Map<string, Edge>;
  out: Map<string, Edge>;
  /** The nodes before and after it, with the numbers of edges. */
  predecessors: Map<string, number>;
  successors: Map<string, number>;
}

function count(nodes: Map<string, number>, v: string, by: number): void {
  const n = (nodes.get(v) ?? 0) + by;
  if (n === 0) nodes.delete(v);
  else nodes.set(v, n);
}

function keyOf({ v, w, name }: Edge): string {
  return v + "\u0001" + w + "\u0001" + (name ?? "\0");
}

function keysOf<T>(map: ReadonlyMap<string, T> | undefined): string[] | undefined {
  return map && [...map.keys()];
}

function valuesOf<T>(map: ReadonlyMap<string, T> | undefined): T[] | undefined {
  return map && [...map.values()];
}

/** Walks of trees, which have no direction. */
export const alg = {
  preorder: (g: Graph, from: readonly string[]): string[] => walk(g, from, false),
  postorder: (g: Graph, from: readonly string[]): string[] => walk(g, from, true),
};

function walk(g: Graph, from: readonly string[], isAfterOthers: boolean): string[] {
  const seen = new Set<string>();
  const order: string[] = [];
  const visit = (v: string): void => {
    if (seen.has(v)) return;
    seen.add(v);
    if (!isAfterOthers) order.push(v);
    for (const w of g.neighbors(v)) visit(w);
    if (isAfterOthers) order.push(v);
  };
  for (const v of from) visit(v);
  return order;
}

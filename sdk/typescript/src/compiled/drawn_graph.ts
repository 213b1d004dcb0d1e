/** The nodes and edges of a program, for drawings. */
import { END, START } from "../constants.js";
import { type Program, programOf } from "../declare/index.js";
import { type DrawnEdge, type DrawnNode, drawMermaid, type MermaidOptions } from "../drawing/index.js";

export class DrawableGraph {
  readonly nodes: Readonly<Record<string, DrawnNode>>;

  constructor(
    nodes: readonly DrawnNode[],
    readonly edges: readonly DrawnEdge[],
  ) {
    this.nodes = Object.fromEntries(nodes.map((node) => [node.id, node]));
  }

  /** The graph as text for Mermaid. */
  drawMermaid(options?: MermaidOptions): string {
    return drawMermaid(Object.values(this.nodes), this.edges, options);
  }

  toJSON(): { nodes: DrawnNode[]; edges: DrawnEdge[] } {
    return { nodes: Object.values(this.nodes), edges: [...this.edges] };
  }
}

/** Draws a program. `xray` opens subgraphs: all, or so many levels of them. */
export function drawGraph(program: Program, xray: boolean | number): DrawableGraph {
  const { nodes, edges } = collect(program, xray === true ? Number.POSITIVE_INFINITY : Number(xray));
  return new DrawableGraph(nodes, edges);
}

type Parts = { nodes: DrawnNode[]; edges: DrawnEdge[] };

function collect(program: Program, depth: number): Parts {
  const nodes: DrawnNode[] = [{ id: START, name: START }];
  const inner: DrawnEdge[] = [];
  const opened = new Set<string>();
  for (const { name, subgraph, metadata, handles } of program.nodes.values()) {
    if (handles) continue;
    if (subgraph === undefined || depth <= 0) {
      nodes.push({ id: name, name, ...(Object.keys(metadata).length > 0 && { metadata }) });
      continue;
    }
    opened.add(name);
    const parts = collect(programOf(subgraph), depth - 1);
    nodes.push(...parts.nodes.map((node) => ({ ...node, id: `${name}:${node.id}` })));
    inner.push(
      ...parts.edges.map((edge) => ({
        ...edge,
        source: `${name}:${edge.source}`,
        target: `${name}:${edge.target}`,
      })),
    );
  }
  const outer = collectEdges(program).map((edge) => ({
    ...edge,
    source: opened.has(edge.source) ? `${edge.source}:${END}` : edge.source,
    target: opened.has(edge.target) ? `${edge.target}:${START}` : edge.target,
  }));
  nodes.push({ id: END, name: END });
  return { nodes, edges: [...outer, ...inner] };
}

function collectEdges(program: Program): DrawnEdge[] {
  const { edgeList, branchList } = program.builder;
  const edges: DrawnEdge[] = edgeList.flatMap(({ sources, target }) =>
    sources.map((source) => ({ source, target, conditional: false })),
  );
  for (const branch of branchList) {
    const paths = branch.paths ?? Object.fromEntries(program.targetsOf(branch).map((name) => [name, name]));
    for (const [data, target] of Object.entries(paths)) {
      edges.push({
        source: branch.source,
        target,
        data: data === target ? undefined : data,
        conditional: true,
      });
    }
  }
  for (const node of program.nodes.values()) {
    for (const target of node.destinations) edges.push({ source: node.name, target, conditional: true });
  }
  const sources = new Set(edges.map(({ source }) => source));
  const leaves = [...program.nodes.values()].filter(({ name, handles }) => !handles && !sources.has(name));
  return [...edges, ...leaves.map(({ name }) => ({ source: name, target: END, conditional: false }))];
}

/** Graphs as text in the language of Mermaid. */
import { END, START } from "../constants.js";

export type DrawnNode = { id: string; name: string; metadata?: Readonly<Record<string, unknown>> };
export type DrawnEdge = { source: string; target: string; data?: string | undefined; conditional: boolean };

export type MermaidOptions = { withStyles?: boolean; curveStyle?: string; wrapLabelNWords?: number };

/** The text of a graph; subgraphs are boxes. The levels of ids are separated by colons. */
export function drawMermaid(
  nodes: readonly DrawnNode[],
  edges: readonly DrawnEdge[],
  options: MermaidOptions = {},
): string {
  const { withStyles = true, curveStyle = "linear" } = options;
  const lines = withStyles
    ? [`%%{init: {'flowchart': {'curve': '${curveStyle}'}}}%%`, "graph TD;"]
    : ["graph TD;"];
  lines.push(...nodes.map((node) => `\t${drawNode(node)}`));
  lines.push(...drawLevel(edges, ""));
  if (withStyles) {
    lines.push(
      "\tclassDef default fill:#f2f0ff,line-height:1.2;",
      "\tclassDef first fill-opacity:0;",
      "\tclassDef last fill:#bfb6fc;",
    );
  }
  return `${lines.join("\n")}\n`;
}

function drawNode({ id, name }: DrawnNode): string {
  const label = name.split(":").at(-1) ?? name;
  if (name === START || name === END) {
    const kind = name === START ? "first" : "last";
    return `${escapeId(id)}([<p>${label}</p>]):::${kind}`;
  }
  return `${escapeId(id)}(${label})`;
}

/** The edges of a level, and below them its subgraphs. */
function drawLevel(edges: readonly DrawnEdge[], prefix: string): string[] {
  const depth = prefix === "" ? 0 : prefix.split(":").length;
  const own: DrawnEdge[] = [];
  const inner = new Map<string, DrawnEdge[]>();
  for (const edge of edges) {
    const [source, target] = [edge.source.split(":"), edge.target.split(":")];
    const box = source[depth];
    const isInside = source.length > depth + 1 && target.length > depth + 1 && box === target[depth];
    if (!isInside || box === undefined) own.push(edge);
    else inner.set(box, [...(inner.get(box) ?? []), edge]);
  }
  const lines = own.map((edge) => `\t${drawEdge(edge)}`);
  for (const [box, inside] of inner) {
    lines.push(`\tsubgraph ${box}`, ...drawLevel(inside, prefix === "" ? box : `${prefix}:${box}`), "\tend");
  }
  return lines;
}

function drawEdge({ source, target, data, conditional }: DrawnEdge): string {
  const label = data === undefined || data === target ? "" : ` &nbsp;${data}&nbsp; `;
  const arrow = conditional ? (label ? ` -.${label}.-> ` : " -.-> ") : label ? ` --${label}--> ` : " --> ";
  return `${escapeId(source)}${arrow}${escapeId(target)};`;
}

/** An id with letters, digits and dashes only. */
function escapeId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, (one) => `\\${one.codePointAt(0)?.toString(16)}`);
}

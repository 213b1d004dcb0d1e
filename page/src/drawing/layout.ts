// Where nodes and edges are drawn: https://github.com/dagrejs/dagre places them, from top to bottom.

import { graphlib, layout } from "@dagrejs/dagre";
import type { Diagram, NodeKind } from "./spec";

export interface Point {
  x: number;
  y: number;
}

export interface DrawnNode extends Point {
  name: string;
  /** The name, cut to the width of the node. */
  label: string;
  kind: NodeKind;
  width: number;
  height: number;
}

export interface DrawnEdge {
  from: string;
  to: string;
  label: string;
  isConditional: boolean;
  points: readonly Point[];
  labelAt: (Point & { width: number; height: number }) | undefined;
}

export interface Drawing {
  width: number;
  height: number;
  nodes: readonly DrawnNode[];
  edges: readonly DrawnEdge[];
}

const nodeSize = { width: 158, height: 42 };
const pillSize = { width: 58, height: 26 };
const letterWidth = 7.2;
const labelLetterWidth = 6.2;
const besideName = 50; // the icon and the margins
const longestName = 30;

/** Places the nodes and edges of a diagram. */
export function layoutDiagram(diagram: Diagram): Drawing {
  const g = new graphlib.Graph({ multigraph: false });
  g.setGraph({ rankdir: "TB", nodesep: 34, ranksep: 44, marginx: 8, marginy: 8 });
  g.setDefaultEdgeLabel(() => ({}));
  const labels = new Map<string, string>();
  for (const n of diagram.nodes) {
    const label = cut(n.name);
    labels.set(n.name, label);
    const isPill = n.kind === "start" || n.kind === "end";
    g.setNode(n.name, isPill ? { ...pillSize } : { width: Math.max(nodeSize.width, [...label].length * letterWidth + besideName), height: nodeSize.height });
  }
  for (const e of diagram.edges) {
    const width = e.label ? [...e.label].length * labelLetterWidth + 12 : 0;
    g.setEdge(e.from, e.to, { width, height: e.label ? 16 : 0, labelpos: "c" });
  }
  layout(g);
  const size = g.graph() as { width?: number; height?: number };
  return {
    width: Math.ceil(size.width ?? 0),
    height: Math.ceil(size.height ?? 0),
    nodes: diagram.nodes.map((n) => {
      const { x, y, width, height } = g.node(n.name) as DrawnNode;
      return { name: n.name, label: labels.get(n.name)!, kind: n.kind, x, y, width, height };
    }),
    edges: diagram.edges.map((e) => {
      const { points: placed, x, y, width, height } = g.edge(e.from, e.to) as { points: Point[]; x?: number; y?: number; width: number; height: number };
      const points = e.from === e.to ? loopPoints(g.node(e.from) as DrawnNode) : placed.map((p) => ({ x: p.x, y: p.y }));
      return { ...e, points, labelAt: e.label && x !== undefined && y !== undefined ? { x, y, width, height } : undefined };
    }),
  };
}

/** Returns the points of an edge from a node to itself, on its right, where the layout leaves room for it. */
function loopPoints({ x, y, width }: DrawnNode): Point[] {
  const side = x + width / 2;
  return [{ x: side, y: y - 9 }, { x: side + 24, y: y - 16 }, { x: side + 24, y: y + 16 }, { x: side, y: y + 9 }];
}

function cut(name: string): string {
  const letters = [...name];
  return letters.length <= longestName ? name : letters.slice(0, longestName - 1).join("") + "…";
}

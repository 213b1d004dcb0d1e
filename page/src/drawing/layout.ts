// Where nodes and edges are drawn: https://github.com/dagrejs/dagre places them, from top to bottom.

import { Graph, layout } from "@dagrejs/dagre";
import type { Diagram, DiagramEdge, DiagramNode, NodeKind } from "./spec";
import { cutToWidth, widthOf } from "./width";

export interface Point {
  x: number;
  y: number;
}

/** A rectangle around its centre. */
export interface Place extends Point {
  width: number;
  height: number;
}

export interface DrawnNode extends Place {
  name: string;
  /** The name as it is shown, cut to the width of the node. */
  label: string;
  kind: NodeKind;
  /** The drawing of its graph where that is open, and its corner from that of the node. */
  inner?: Point & { drawing: Drawing };
}

export interface DrawnEdge {
  from: string;
  to: string;
  /** The label as it is shown, cut. */
  label: string;
  isConditional: boolean;
  points: readonly Point[];
  labelAt: Place | undefined;
}

/** The bar in which the edges of a join meet before they go on to its target. */
export interface DrawnJoin extends Place {
  sources: readonly string[];
  to: string;
}

export interface Drawing {
  width: number;
  height: number;
  nodes: readonly DrawnNode[];
  edges: readonly DrawnEdge[];
  joins: readonly DrawnJoin[];
}

const nodeSize = { width: 158, height: 42 };
const pillSize = { width: 58, height: 26 };
const joinSize = { width: 46, height: 5 };
const labelHeight = 16;
const fontSize = { name: 12, label: 11 };
const longest = { name: 250, label: 230 };
const besideName = 52; // the icon and the margins
const loopWidth = 16;
const aroundInner = 6;
const noSize = { width: 0, height: 0 };
const margin = 8;

/**
 * Places the nodes and edges of a diagram. The same diagram has the same drawing.
 * @param show makes a text one that can be shown
 * @param inner the drawings of the graphs of nodes, by the names of the nodes
 */
export function layoutDiagram(diagram: Diagram, show: (text: string) => string = (text) => text, inner: ReadonlyMap<string, Drawing> = new Map()): Drawing {
  // Nodes have numbers here, so that no name is that of a property of all objects.
  const g = new Graph({ multigraph: true });
  g.setGraph({ rankdir: "TB", nodesep: 34, ranksep: 44, marginx: margin, marginy: margin });
  const ids = new Map<string, string>();
  const labels = diagram.nodes.map((n) => cutToWidth(show(n.name), longest.name / fontSize.name));
  diagram.nodes.forEach((n, i) => {
    ids.set(n.name, `n${i}`);
    g.setNode(`n${i}`, sizeOfNode(n, labels[i]!, inner.get(n.name)));
  });
  const edges = diagram.edges.filter((e) => ids.has(e.from) && ids.has(e.to));
  const placed = edges.map((e, i) => placeEdge(g, e, i, ids.get(e.from)!, ids.get(e.to)!, show));
  layout(g);
  const drawn = {
    nodes: diagram.nodes.map((n, i) => drawNode(n, labels[i]!, placeOf(g.node(`n${i}`) as Place), inner.get(n.name))),
    edges: placed.map((read) => read()),
    joins: [...new Set(edges.map((e) => e.join))].filter((join) => join !== undefined).map((join) => drawJoin(g, edges.filter((e) => e.join === join))),
  };
  return { ...sizeOf(drawn), ...drawn };
}

function sizeOfNode({ kind }: DiagramNode, label: string, inner: Drawing | undefined): { width: number; height: number } {
  if (kind === "start" || kind === "end") return { ...pillSize };
  const width = Math.max(nodeSize.width, Math.ceil(widthOf(label) * fontSize.name) + besideName);
  return inner ? { width: Math.max(width, inner.width + 2 * aroundInner), height: nodeSize.height + inner.height + aroundInner } : { width, height: nodeSize.height };
}

/** Returns a node; the drawing of its graph is below its name, in the middle. */
function drawNode({ name, kind }: DiagramNode, label: string, place: Place, inner: Drawing | undefined): DrawnNode {
  return { name, label, kind, ...place, ...(inner && { inner: { drawing: inner, x: (place.width - inner.width) / 2, y: nodeSize.height } }) };
}

/** Returns the bar of the edges of a join. */
function drawJoin(g: Graph, edges: readonly DiagramEdge[]): DrawnJoin {
  const { join, to } = edges[0]!;
  return { sources: edges.map((e) => e.from), to, ...placeOf(g.node(`j${join}`) as Place) };
}

/** Returns how far everything reaches. dagre has room for loops that are drawn smaller. */
function sizeOf({ nodes, edges }: Pick<Drawing, "nodes" | "edges">): { width: number; height: number } {
  let [width, height] = [0, 0];
  const reach = (p: Point, more: { width: number; height: number }): void => {
    width = Math.max(width, p.x + more.width / 2);
    height = Math.max(height, p.y + more.height / 2);
  };
  for (const n of nodes) reach(n, n);
  for (const e of edges) {
    if (e.labelAt) reach(e.labelAt, e.labelAt);
    for (const p of e.points) reach(p, noSize);
  }
  return { width: Math.ceil(width + margin), height: Math.ceil(height + margin) };
}

/** Gives an edge to the graph, and returns what reads where it was placed. */
function placeEdge(g: Graph, e: DiagramEdge, i: number, from: string, to: string, show: (text: string) => string): () => DrawnEdge {
  const { join, ...edge } = e;
  if (join !== undefined) {
    const bar = `j${join}`;
    if (!g.hasNode(bar)) {
      g.setNode(bar, { ...joinSize });
      g.setEdge(bar, to, { ...noSize }, "join");
    }
    g.setEdge(from, bar, { ...noSize, weight: 2 }, "join");
    return () => ({ ...edge, points: joinPoints(pointsOf(g, from, bar, "join"), g.node(bar) as Place, pointsOf(g, bar, to, "join")), labelAt: undefined });
  }
  const label = cutToWidth(show(e.label), longest.label / fontSize.label);
  const size = label ? { width: Math.ceil(widthOf(label) * fontSize.label) + 12, height: labelHeight } : from === to ? { width: loopWidth, height: 0 } : noSize;
  g.setEdge(from, to, { ...size, labelpos: "c" }, `e${i}`);
  return () => {
    const at = g.edge(from, to, `e${i}`) as Place;
    const points = pointsOf(g, from, to, `e${i}`);
    return { ...edge, label, points: from === to ? loopPoints(g.node(from) as Place, at) : label ? pointsThrough(points, at) : points, labelAt: label ? placeOf(at) : undefined };
  };
}

/** Returns the points of an edge that goes through the bar of a join. */
function joinPoints(before: readonly Point[], bar: Place, after: readonly Point[]): Point[] {
  const above = { x: bar.x, y: bar.y - 2 * bar.height };
  return [...before.slice(0, -1), above, { x: bar.x, y: bar.y }, ...after.slice(1)];
}

/** Returns the points of an edge from a node to itself: up to its label, or to the middle of the place that it has. */
function loopPoints(node: Place, label: Place): Point[] {
  const side = node.x + node.width / 2;
  const out = Math.max(side + loopWidth, label.x - label.width / 2 + 4);
  const up = node.height / 4;
  const at = (x: number, y: number): Point => ({ x, y: node.y + y });
  return [at(side, -up), at(out, -2 * up), at(out, 0), at(out, 2 * up), at(side, up)];
}

/** Returns the points of an edge that goes through its label: pathOf goes to a point that is there twice. */
function pointsThrough(points: readonly Point[], label: Point): Point[] {
  return points.flatMap((p, i) => (i > 0 && i < points.length - 1 && Math.hypot(p.x - label.x, p.y - label.y) < 1 ? [p, p] : [p]));
}

function pointsOf(g: Graph, from: string, to: string, name: string): Point[] {
  return (g.edge(from, to, name) as { points: Point[] }).points.map(({ x, y }) => ({ x, y }));
}

function placeOf({ x, y, width, height }: Place): Place {
  return { x, y, width, height };
}

// Finds out where a graph is drawn, beside the page: that of a large one takes seconds.

import { plainText } from "../text/hidden";
import type { Answer, OpenGraph } from "./background";
import { type Drawing, layoutDiagram } from "./layout";
import { type Diagram, readDiagram } from "./spec";

// More would be more elements than a browser scrolls well.
const mostNodes = 1000;
const mostEdges = 2000;

onmessage = ({ data }: MessageEvent<OpenGraph>) => postMessage(answer(data));

function answer(graph: OpenGraph): Answer {
  const open = readAll(graph);
  const { nodes, edges } = open;
  if (nodes > mostNodes || edges > mostEdges) return { problem: `The graph has ${nodes} nodes and ${edges} edges, too many to draw here` };
  return { drawing: layoutAll(open) };
}

/** A diagram with those of its nodes, and how much there is in all. */
interface OpenDiagram {
  diagram: Diagram;
  inner: ReadonlyMap<string, OpenDiagram>;
  nodes: number;
  edges: number;
}

function readAll(graph: OpenGraph): OpenDiagram {
  const diagram = readDiagram(graph.spec);
  const inner = new Map([...graph.inner].map(([name, g]) => [name, readAll(g)]));
  let [nodes, edges] = [diagram.nodes.length, diagram.edges.length];
  for (const d of inner.values()) {
    nodes += d.nodes;
    edges += d.edges;
  }
  return { diagram, inner, nodes, edges };
}

function layoutAll({ diagram, inner }: OpenDiagram): Drawing {
  return layoutDiagram(diagram, plainText, new Map([...inner].map(([name, d]) => [name, layoutAll(d)])));
}

// Finds out where a graph is drawn, beside the page: that of a large one takes seconds.

import type { GraphSpec } from "../api/messages";
import { plainText } from "../text/hidden";
import type { Answer } from "./background";
import { layoutDiagram } from "./layout";
import { readDiagram } from "./spec";

// More would be more elements than a browser scrolls well.
const mostNodes = 1000;
const mostEdges = 2000;

onmessage = ({ data: spec }: MessageEvent<GraphSpec>) => postMessage(answer(spec));

function answer(spec: GraphSpec): Answer {
  const diagram = readDiagram(spec);
  const { nodes, edges } = diagram;
  if (nodes.length > mostNodes || edges.length > mostEdges) return { problem: `The graph has ${nodes.length} nodes and ${edges.length} edges, too many to draw here` };
  return { drawing: layoutDiagram(diagram, plainText) };
}

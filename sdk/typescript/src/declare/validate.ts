/** Finds what is wrong with a graph before the server is asked. */
import { END, START } from "../constants.js";
import { UnreachableNodeError } from "../errors/index.js";
import type { GraphBuilder } from "./builder.js";
import { checkDefaults } from "./defaults.js";
import { refuseGraph } from "./nodes.js";

/** Throws the first mistake of a graph. */
export function validateGraph(builder: GraphBuilder, breakpoints: readonly string[]): void {
  checkSources(builder);
  checkTargets(builder);
  for (const name of breakpoints) {
    if (name !== "*" && !(name in builder.nodes)) throw refuseGraph(`the breakpoint "${name}" is no node`);
  }
  checkReached(builder);
  checkDefaults(builder.keys);
}

/** Throws for what the nodes of a graph that the server has can't bring along. */
export function validatePart(builder: GraphBuilder): void {
  const { nodes, edgeList, branchList, defaults } = builder;
  const [edge] = edgeList;
  if (edge)
    throw refuseGraph(
      `partOf: the edges are those of the server's graph, so leave out addEdge to "${edge.target}"`,
    );
  if (Object.keys(nodes).length === 0)
    throw refuseGraph("partOf: want a node to serve: addNode(name, action)");
  for (const { source } of branchList) {
    if (!(source in nodes))
      throw refuseGraph(`partOf: a condition is after the unknown node "${source}"; ${listNodes(nodes)}`);
  }
  for (const { name, subgraph, policies } of Object.values(nodes)) {
    if (subgraph)
      throw refuseGraph(`partOf: the graph in node "${name}" is for the server's graph to declare`);
    if (policies.errorHandler ?? defaults.errorHandler)
      throw refuseGraph(`partOf: the error handler of node "${name}" is for the server's graph to declare`);
  }
}

function checkSources({ nodes, edgeList, branchList }: GraphBuilder): void {
  const sources = [...edgeList.flatMap((edge) => edge.sources), ...branchList.map(({ source }) => source)];
  for (const source of sources) {
    if (source !== START && !(source in nodes))
      throw refuseGraph(`an edge begins at the unknown node "${source}"; ${listNodes(nodes)}`);
  }
  if (!sources.includes(START)) throw refuseGraph("no edge leads from START to a node: addEdge(START, name)");
}

function checkTargets({ nodes, edgeList, branchList }: GraphBuilder): void {
  for (const { sources, target } of edgeList) {
    if (target !== END && !(target in nodes)) {
      const from = sources.map((source) => `"${source}"`).join(", ");
      throw refuseGraph(`an edge leads to the unknown node "${target}" from ${from}; ${listNodes(nodes)}`);
    }
  }
  for (const { source, name, paths } of branchList) {
    for (const target of Object.values(paths ?? {})) {
      if (target !== END && !(target in nodes)) {
        throw refuseGraph(
          `the condition "${name}" after "${source}" leads to the unknown node "${target}"; ${listNodes(nodes)}`,
        );
      }
    }
  }
}

function listNodes(nodes: GraphBuilder["nodes"]): string {
  const names = Object.keys(nodes).map((name) => `"${name}"`);
  return names.length === 0 ? "the graph has no nodes" : `the graph has the nodes ${names.join(", ")}`;
}

function checkReached({ nodes, edgeList, branchList }: GraphBuilder): void {
  if (branchList.some(({ paths }) => paths === undefined)) return; // it may lead anywhere
  const reached = new Set([
    ...edgeList.map(({ target }) => target),
    ...branchList.flatMap(({ paths }) => Object.values(paths ?? {})),
    ...Object.values(nodes).flatMap(({ destinations }) => destinations),
  ]);
  for (const name of Object.keys(nodes)) {
    if (!reached.has(name)) {
      throw new UnreachableNodeError(
        `no edge leads to node "${name}". If a Command leads there, name it in the ends of the node that returns it: ` +
          `addNode(…, { ends: ["${name}"] })`,
      );
    }
  }
}

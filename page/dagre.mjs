// Packs the parts of dagre that a drawing needs. Its package is one file that nothing can be left out
// of, but its source map has the modules. Drawings go from top to bottom and have no clusters, so the
// steps of clusters and of other directions are left out. Its graphs are those of src/drawing/graph.ts.
// The drawings are the same.

import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const page = dirname(fileURLToPath(import.meta.url));
const namespace = "dagre";

/** Modules that are replaced. */
const replaced = {
  "/index.ts": `export { Graph } from "./lib/graph-lib"; export { layout } from "./lib/layout";`,
  "/lib/rank/index.ts": `export { default } from "./network-simplex";`,
  // Without constraints there are no conflicts.
  "/lib/order/resolve-conflicts.ts": `
    export default function listEntries(all) {
      return all.map(({ v, barycenter, weight }, i) => ({ vs: [v], i, ...(barycenter !== undefined && { barycenter, weight }) })).reverse();
    }`,
};

/** The steps of runLayout and updateInputGraph, without those of clusters, of directions and of layouts before. */
const layout = `
export function layout(input) {
  const g = buildLayoutGraph(input);
  makeSpaceForEdgeLabels(g);
  removeSelfEdges(g);
  acyclic.run(g);
  nestingGraph.run(g);
  rank(util.asNonCompoundGraph(g));
  injectEdgeLabelProxies(g);
  removeEmptyRanks(g);
  nestingGraph.cleanup(g);
  normalizeRanks(g);
  removeEdgeLabelProxies(g);
  normalize.run(g);
  order(g);
  insertSelfEdges(g);
  position(g);
  positionSelfEdges(g);
  normalize.undo(g);
  translateGraph(g);
  assignNodeIntersects(g);
  reversePointsForReversedEdges(g);
  acyclic.undo(g);
  updateInputGraph(input, g);
}
`;

/** Labels of graphs, nodes and edges are those that a layout reads, and no others. */
const buildLayoutGraph = `
function buildLayoutGraph(input) {
  const g = new Graph();
  g.setGraph({ ...graphDefaults, ...input.graph() });
  for (const v of input.nodes()) g.setNode(v, { ...input.node(v) });
  for (const e of input.edges()) g.setEdge(e, { ...edgeDefaults, ...input.edge(e) });
  return g;
}

`;

/** Parts of modules that are replaced: from, up to and not with, by what. */
const cuts = {
  "/lib/layout.ts": [
    ["export function layout<", "/*\n * Copies final layout information", layout],
    ["function buildLayoutGraph(", "/*\n * This idea comes", buildLayoutGraph],
    ["// If points array is not set", "            });\n            delete node.selfEdges", ""],
    ["const selfNode = ", "selfEdgeNode.edgeLabel.x = nodeX", "selfEdgeNode.edgeLabel.points = []; const nodeX = node.x, nodeY = node.y;\n"], // a drawing has loops of its own
    ["} else if (node && Array.isArray(", "    });\n}\n\nfunction selectNumberAttrs", "}\n"],
  ],
  "/lib/acyclic.ts": [
    ["(graph.graph().acyclicer === ", "fas.forEach(", "dfsFAS(graph, null);"],
    ["    function dfsDynamic(", "    graph.sources().forEach(", "    const dfsFn = dfs;\n"],
  ],
  "/lib/rank/network-simplex.ts": [["// Expose some internals", "/*\n * The network simplex", ""]],
  "/lib/nesting-graph.ts": [["    const top: string", "\n}\n\nfunction treeDepths", ""]],
  "/lib/order/init-order.ts": [
    ["            const sortedSuccessors", "        }\n    }\n\n    const orderedVs", "            successors.forEach(dfs);\n"],
    ["    function compareOldOrder(", "    return layers;", ""],
  ],
  "/lib/order/sort.ts": [
    ["    let resolvedReversedPairs", "    const parts", "    const resolvedReversedPairs = reversedPairs, resolvedGraph = null, resolvedOldNodes = null, resolvedBiasRight = biasRight;\n"],
    ["        if (graph && (typeof", "        return !bias", ""],
  ],
  "/lib/order/index.ts": [
    ["    if (typeof opts.customOrder", "    const maxRank", ""],
    ["        addSubgraphConstraints(lg", "    });\n}", ""],
  ],
  "/lib/order/build-layer-graph.ts": [["            if (Object.hasOwn(node, \"minRank\"))", "        }\n    });\n\n    return result", ""]],
  "/lib/order/sort-subgraph.ts": [
    ["    const node = graph.node(v);", "    const barycenters", ""],
    ["    barycenters.forEach(", "    const entries =", ""],
    ["    expandSubgraphs(", "    const reversedPairs", ""],
    ["    if (bl && br)", "    Object.defineProperty(result, \"result\"", ""],
  ],
  "/lib/position/bk.ts": [
    ["    function isBorderDummy(", "    return conflicts;\n}\n\nfunction findOther", ""],
    ["        const coreNodeIndex", "        modifiedLayer.forEach(", ""],
    ["                if (corePath?.includes(v)) {", "                const ws", ""],
    ["                            if (hasShifted) {", "                        }\n                    }\n                }\n            }", ""],
    ["    if (!corePath) return false;", "\n}", "    return false;"],
    ["        if (Object.hasOwn(vLabel, ", "        sum += (vLabel.dummy", ""],
    ["        if (Object.hasOwn(wLabel, ", "        return sum;", ""],
  ],
};

/** Returns an esbuild plugin. */
export function packDagre() {
  const map = JSON.parse(readFileSync(join(page, "node_modules/@dagrejs/dagre/dist/dagre.esm.js.map"), "utf8"));
  const sources = new Map(map.sources.map((path, i) => [posix.join("/dist", path), map.sourcesContent[i]]));
  for (const [path, text] of Object.entries(replaced)) sources.set(path, text);
  for (const [path, parts] of Object.entries(cuts)) for (const part of parts) sources.set(path, cut(path, sources.get(path), part));
  return {
    name: "pack-dagre",
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^@dagrejs\/dagre$/ }, ({ kind }) => ({ path: "/index.ts", namespace, sideEffects: false }));
      onResolve({ filter: /./, namespace }, ({ path, importer }) => {
        if (path === "@dagrejs/graphlib") return { path: join(page, "src/drawing/graph.ts"), sideEffects: false };
        const found = posix.join(posix.dirname(importer), path);
        return { path: [found + ".ts", found + "/index.ts"].find((p) => sources.has(p)), namespace, sideEffects: false };
      });
      onLoad({ filter: /./, namespace }, ({ path }) => ({ contents: sources.get(path), loader: "ts" }));
    },
  };
}

function cut(path, text, [from, to, by]) {
  const at = text?.indexOf(from) ?? -1;
  const end = text?.indexOf(to, at) ?? -1;
  if (at < 0 || end < 0) throw new Error(`dagre: ${path} has no part from ${from} to ${to}: this is another version`);
  return text.slice(0, at) + by + text.slice(end);
}

/** What a worker offers to a server. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GraphSpec } from "../_gen/graphd/v1/graph_pb.js";
import type { ServedNodeSchema } from "../_gen/graphd/v1/worker_task_pb.js";
import { wireName } from "../names/index.js";
import type { Program } from "./program.js";
import { buildSpec } from "./spec.js";

/** Graphs that it brings along, and nodes of graphs that the server has. */
export type Manifest = { graphs: GraphSpec[]; nodes: MessageInitShape<typeof ServedNodeSchema>[] };

/** A program with the graphs inside of it; of a part of a graph, its nodes alone. */
export function buildManifest(program: Program): Manifest {
  if (!program.options.isPart) {
    const below = program.descendants().map((child) => buildSpec(child, true));
    return { graphs: [...below, buildSpec(program)], nodes: [] };
  }
  const { name: graph, version: graphVersion } = program.options;
  const nodes = [...program.nodes.values()].map(({ name }) => ({
    graph,
    graphVersion,
    node: wireName(name),
  }));
  return { graphs: [], nodes };
}

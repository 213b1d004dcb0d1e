export * from "./graph_constructor.js";
export type {
  AddNodeOptions,
  ConditionalEdgeRouter,
  ConditionalEdgeRouterTypes,
  GraphNode,
  GraphNodeReturnValue,
  GraphNodeTypes,
  NodeAction,
  NodeFunction,
  NodePolicyOptions,
  StateGraphAddNodeOptions,
} from "./node_types.js";
export { StateGraphBuilder } from "./state_graph.js";

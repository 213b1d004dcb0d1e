/** Compiled graphs, under the name of their entry in LangGraph.js. */
export {
  CompiledStateGraph,
  type InvokeOptions,
  type PregelInputType,
  type PregelOptions,
  type PregelOutputType,
  type StateSnapshot,
  type StreamMode,
  type StreamOptions,
} from "../compiled/index.js";

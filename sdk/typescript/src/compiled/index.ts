export type { InvokeOptions, StreamOptions } from "./call_config.js";
export { CompiledStateGraph } from "./compiled_graph.js";
export type {
  CompiledGraph,
  CompiledGraphType,
  GetStateOptions,
  Pregel,
  PregelInputType,
  PregelOptions,
  PregelOutputType,
} from "./compiled_types.js";
export { GraphDrained, isGraphDrained } from "./drained_run.js";
export { DrawableGraph } from "./drawn_graph.js";
export { GraphdStore, type GraphdStoreOptions } from "./graphd_store.js";
export { IterableReadableStream } from "./iterable_stream.js";
export type { CompileOptions } from "./options.js";
export { PipedGraph, type PipeStep } from "./piped_graph.js";
export type { BatchOptions } from "./runnable_graph.js";
export type { StateSnapshot, StreamMode, StreamOutputMap } from "./stream_types.js";

export type { InvokeOptions, StreamOptions } from "./call_config.js";
export { CompiledStateGraph } from "./compiled_graph.js";
export { GraphDrained } from "./drained_run.js";
export { DrawableGraph } from "./drawn_graph.js";
export { IterableReadableStream } from "./iterable_stream.js";
export type { CompileOptions } from "./options.js";
export type { StateSnapshot, StreamMode, StreamOutputMap } from "./stream_types.js";

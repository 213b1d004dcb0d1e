export type { RunConfig } from "./config.js";
export { type EventRequest, type FollowOptions, followEvents } from "./event_stream.js";
export {
  createAbortError,
  errorOfFailure,
  type FindThrown,
  RunFailedError,
  storedError,
} from "./failures.js";
export { buildGotos } from "./gotos.js";
export { type GraphShape, UNKNOWN_GRAPH } from "./graph_shape.js";
export { fromLabels, toLabels } from "./labels.js";
export { invokeRun, type RunCall, type StreamCall, streamRun } from "./run_call.js";
export type { CallSpec } from "./run_request.js";
export { type ShownInterrupt, showInterrupt, showQuestions } from "./shown_interrupt.js";
export type { PlaceConfig, SnapshotMetadata, StateSnapshot, TaskSnapshot } from "./snapshots.js";
export { readStreamModes, STREAM_MODES, type StreamItem, type StreamMode } from "./stream_modes.js";
export {
  getThreadState,
  type HistoryOptions,
  listThreadStates,
  type StateUpdate,
  type ThreadPlace,
  updateThreadState,
} from "./thread_states.js";
export { buildWireContext, CONFIGURABLE } from "./wire_context.js";

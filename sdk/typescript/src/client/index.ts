export {
  createAbortError,
  errorOfFailure,
  type FindThrown,
  RunFailedError,
  storedError,
} from "../calls/index.js";
export type { AnswerOutcome, BulkAnswerError, BulkAnswerOptions } from "./bulk_answer.js";
export { Client, type Graph, type RunOptions, type StreamOptions, type ThreadSummary } from "./client.js";
export type { RunConfig } from "./config.js";
export { type EventRequest, followEvents } from "./event_stream.js";
export type { FollowedItem, FollowRunOptions } from "./follow_run.js";
export { buildGotos } from "./gotos.js";
export { type GraphShape, UNKNOWN_GRAPH } from "./graph_shape.js";
export {
  type AnswerCheck,
  Inbox,
  type Link,
  type LinkOptions,
  type ListOptions,
  type QuestionCount,
  type Revealed,
  type TrailEntry,
} from "./inbox.js";
export type { QuestionChange, WatchOptions } from "./inbox_watch.js";
export { fromLabels, toLabels } from "./labels.js";
export type { Question, QuestionAction, QuestionState, Vote } from "./question.js";
export type { QuestionFilter } from "./question_filter.js";
export type {
  AnswerStatistics,
  QuestionCounts,
  QuestionSeries,
  QuestionStatistics,
} from "./question_statistics.js";
export type { Run, RunStatus } from "./run.js";
export { invokeRun, type RunCall, type StreamCall, streamRun } from "./run_call.js";
export type { OpenQuestions, WhenBusy } from "./run_policies.js";
export type { CallSpec } from "./run_request.js";
export { type ShownInterrupt, showInterrupt, showQuestions } from "./shown_interrupt.js";
export type { PlaceConfig, SnapshotMetadata, StateSnapshot, TaskSnapshot } from "./snapshots.js";
export { formatChunk, formatServerSentEvent, readStreamFormat, type StreamFormat } from "./stream_format.js";
export {
  readStreamModes,
  STREAM_MODES,
  type StreamItem,
  type StreamMode,
  selectKeys,
} from "./stream_modes.js";
export {
  getThreadState,
  type HistoryOptions,
  listThreadStates,
  type StateUpdate,
  type ThreadPlace,
  updateThreadState,
  writeInput,
} from "./thread_states.js";
export { buildWireContext, CONFIGURABLE } from "./wire_context.js";

// The messages of the server as JSON, under the names of the proto.

export type { InterruptJson as Interrupt, TrailEntryJson as TrailEntry, VoteJson as Vote, StepJson as Step } from "../../gen/graphd/v1/interrupt_pb";
export type {
  AnswerStatisticsJson as AnswerStatistics, InterruptStatisticsJson as InterruptStatistics, InterruptStatistics_CountsJson as QuestionCounts,
  InterruptStatistics_SeriesJson as QuestionSeries, CountInterruptsResponseJson as CountInterruptsResponse, InterruptChangeJson as InterruptChange, ListInterruptsResponseJson as ListInterruptsResponse,
  ListTrailResponseJson as ListTrailResponse, RevealInterruptResponseJson as RevealInterruptResponse, AnswerOutcomeJson as AnswerOutcome, LinkJson as Link,
} from "../../gen/graphd/v1/interrupt_service_pb";
export type { CallerJson as Caller, ListGraphsResponseJson as ListGraphsResponse, ListWorkersResponseJson as ListWorkersResponse, ServerInfoJson as ServerInfo } from "../../gen/graphd/v1/registry_service_pb";
export type { BranchSpecJson as BranchSpec, GraphJson as Graph, GraphSpecJson as GraphSpec, NodeSpecJson as NodeSpec } from "../../gen/graphd/v1/graph_pb";
export type { StateSnapshotJson as StateSnapshot, ThreadJson as Thread } from "../../gen/graphd/v1/thread_pb";
export type { ListCheckpointsResponseJson as ListCheckpointsResponse, ListThreadsResponseJson as ListThreadsResponse } from "../../gen/graphd/v1/thread_service_pb";
export type { EventJson as Event } from "../../gen/graphd/v1/event_pb";
export type { RunJson as Run } from "../../gen/graphd/v1/run_pb";
export type { FailureJson as Failure } from "../../gen/graphd/v1/payload_pb";
export type { ListRunsResponseJson as ListRunsResponse } from "../../gen/graphd/v1/graph_service_pb";
export type { WorkerInfoJson as WorkerInfo } from "../../gen/graphd/v1/worker_pb";

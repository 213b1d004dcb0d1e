import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { RunState, type Run as WireRun } from "../_gen/graphd/v1/run_pb.js";
import { errorOfRun } from "../calls/index.js";
import { fromPayload } from "../codec/index.js";
import { publicThread } from "../names/index.js";
import { fromLabels } from "./labels.js";

export type RunStatus =
  | "queued"
  | "running"
  | "interrupted"
  | "cancelling"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "timed_out"
  | "superseded";

/** A run as it was when it was read. */
export type Run = {
  runId: string;
  threadId: string;
  graph: string;
  version: string;
  state: RunStatus;
  /** What it has failed with. */
  error?: Error;
  metadata: Record<string, unknown>;
  /** Questions that it waits for. */
  openInterruptIds: string[];
  /** The state at its end, once it has succeeded. */
  output?: unknown;
  /** The caller that started it; empty when the server knows no callers. */
  startedBy: string;
  /** When it begins at the earliest; `undefined` for a run that was to begin at once. */
  beginsAt: Date | undefined;
  createdAt: Date | undefined;
  updatedAt: Date | undefined;
};

export function readRun(run: WireRun): Run {
  const error = errorOfRun(run);
  return {
    runId: run.runId,
    threadId: publicThread(run.threadId),
    graph: run.graph,
    version: run.graphVersion,
    state: (RunState[run.state] ?? "").toLowerCase() as RunStatus,
    ...(error instanceof Error ? { error } : {}),
    metadata: fromLabels(run.metadata),
    openInterruptIds: run.openInterruptIds,
    output: fromPayload(run.output),
    startedBy: run.startedBy,
    beginsAt: readTime(run.beginTime),
    createdAt: readTime(run.createTime),
    updatedAt: readTime(run.updateTime),
  };
}

export function readTime(time: Timestamp | undefined): Date | undefined {
  return time === undefined ? undefined : timestampDate(time);
}

/** Runs that their program asks to stop between two supersteps. */
import { CancelRunRequest_Action, GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import type { Caller } from "../calls/index.js";
import { BaseLangGraphError, hasErrorName } from "../errors/index.js";
import type { RunControl } from "../runtime/index.js";

/** The run has stopped because its program has asked for it. It goes on with `null` as the input. */
export class GraphDrained extends BaseLangGraphError {
  constructor(readonly reason: string) {
    super(`the run was asked to stop: ${reason}`);
  }

  static override get unminifiable_name(): string {
    return "GraphDrained";
  }
}

export function isGraphDrained(value: unknown): value is GraphDrained {
  return hasErrorName(value, "GraphDrained");
}

/** Stops a run when its control asks for it. The returned function ends that. */
export function watchControl(
  control: RunControl | undefined,
  caller: Caller,
  threadId: string,
  runId: string,
): () => void {
  const stop = (reason: string) => {
    const request = { threadId, runId, action: CancelRunRequest_Action.DRAIN, reason };
    // A run that has ended by itself needs no stop.
    caller.unary(GraphService.method.cancelRun, request).catch(() => {});
  };
  return control?.onDrain(stop) ?? (() => {});
}

/** What a call throws: the stop that its control has asked for, or what it has failed with. */
export function drainedError(control: RunControl | undefined, error: unknown): unknown {
  const isStopped = control?.drainRequested && (error as { name?: unknown } | null)?.name === "AbortError";
  return isStopped ? new GraphDrained(control.drainReason ?? "") : error;
}

/** Tells a caller who waits that no worker can run a task of the run. */
import { Channel, type Event, TaskChange_Phase } from "../_gen/graphd/v1/event_pb.js";
import { GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import { type Caller, emitWarning } from "../calls/index.js";
import { publicName, publicThread } from "../names/index.js";

/** Milliseconds; workers that connect again take less. */
const PATIENCE = 1_000;
const { STARTED, SUCCEEDED, CANCELLED, UNASSIGNED } = TaskChange_Phase;
const TAKEN = new Set([STARTED, SUCCEEDED, CANCELLED]);
const ADVICE =
  "A thread stays on the version of its graph that it began with: start a worker with the graph as it was, " +
  "or begin a new thread";

/** The tasks of one call that no worker could take when they were due. */
export class UnassignedTasks {
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly caller: Caller) {}

  /** Takes notice of an event of the call. */
  observe(event: Event): void {
    if (event.kind.case !== "task") return;
    const { phase } = event.kind.value;
    if (phase === UNASSIGNED) {
      this.forget(event.taskId);
      this.timers.set(
        event.taskId,
        setTimeout(() => void this.warn(event), PATIENCE),
      );
    } else if (TAKEN.has(phase)) this.forget(event.taskId);
  }

  /** The caller waits no longer. */
  close(): void {
    for (const task of [...this.timers.keys()]) this.forget(task);
  }

  private forget(task: string): void {
    clearTimeout(this.timers.get(task));
    this.timers.delete(task);
  }

  private async warn(event: Event): Promise<void> {
    if (event.kind.case !== "task" || (await this.wasTaken(event))) return;
    if (!this.timers.delete(event.taskId)) return; // the caller has left meanwhile
    const why = event.kind.value.failure?.message ?? "no worker can run it";
    const where = `thread "${publicThread(event.threadId)}", node "${publicName(event.node)}"`;
    emitWarning(`${where}: ${why}. ${ADVICE}`, "NO_WORKER_AVAILABLE");
  }

  /** Whether a task has begun since: the stream of the call need not show it. */
  private async wasTaken({ threadId, runId, taskId, cursor }: Event): Promise<boolean> {
    if (cursor === undefined) return false;
    const start = { case: "after" as const, value: cursor };
    const request = { threadId, runId, filter: { channels: [Channel.TASKS] }, start };
    try {
      for await (const { taskId: task, kind } of this.caller.serverStream(
        GraphService.method.watch,
        request,
      )) {
        if (task === taskId && kind.case === "task" && TAKEN.has(kind.value.phase)) return true;
      }
    } catch {
      // The warning is worth more than the certainty.
    }
    return false;
  }
}

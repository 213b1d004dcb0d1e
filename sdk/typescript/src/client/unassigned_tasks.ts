/** Tells a caller who waits that no worker can run a task of the run. */
import { Channel, type Event, TaskChange_Phase } from "../_gen/graphd/v1/event_pb.js";
import { GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import type { Run } from "../_gen/graphd/v1/run_pb.js";
import { type Caller, emitWarning } from "../calls/index.js";
import { START } from "../constants.js";
import { publicName, publicThread } from "../names/index.js";

/** Milliseconds; workers that connect again take less. */
const PATIENCE = 1_000;
const { STARTED, SUCCEEDED, CANCELLED, UNASSIGNED } = TaskChange_Phase;
const TAKEN = new Set([STARTED, SUCCEEDED, CANCELLED]);

/** The tasks of one call that no worker could take when they were due. However many there are, they are told of at once. */
export class UnassignedTasks {
  private readonly waiting = new Map<string, Event>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private run: Run | undefined;

  /** The version is the caller's own; empty when it has none. */
  constructor(
    private readonly caller: Caller,
    private readonly version: string,
  ) {}

  /** Takes notice of an event of the call. */
  observe(event: Event): void {
    if (event.kind.case === "opened") this.run = event.kind.value.run;
    if (event.kind.case !== "task") return;
    const { phase } = event.kind.value;
    if (TAKEN.has(phase)) this.waiting.delete(event.taskId);
    if (phase !== UNASSIGNED) return;
    this.waiting.set(event.taskId, event);
    this.timer ??= setTimeout(() => void this.warn(), PATIENCE);
  }

  /** The caller waits no longer. */
  close(): void {
    clearTimeout(this.timer);
    this.waiting.clear();
  }

  private async warn(): Promise<void> {
    this.timer = undefined;
    const [first] = this.waiting.values();
    if (first !== undefined) await this.forgetTaken(first);
    const [left] = this.waiting.values();
    if (left?.kind.case !== "task") return; // the caller has left meanwhile, or workers have taken all
    const why = left.kind.value.failure?.message ?? "no worker can run it";
    const others = this.waiting.size > 1 ? `, and ${this.waiting.size - 1} more` : "";
    const where = `thread "${publicThread(left.threadId)}", ${describeTask(left.node)}${others}`;
    this.waiting.clear();
    emitWarning(`${where}: ${why}. ${this.adviseMove(left.threadId)}`, "NO_WORKER_AVAILABLE");
  }

  private adviseMove(threadId: string): string {
    const { graph = "GRAPH", graphVersion = "" } = this.run ?? {};
    const target = this.version === "" || this.version === graphVersion ? "VERSION" : this.version;
    return (
      `A thread stays on the version of its graph that it began with: start a worker that serves ` +
      `${graphVersion === "" ? "this version" : `version ${graphVersion}`}, or move the thread to a version that is ` +
      `served, with \`graphd run ${graph}@${target} --thread ${threadId} --on-busy cancel\``
    );
  }

  /** Forgets the tasks that have begun since: the stream of the call need not show it. */
  private async forgetTaken({ threadId, runId, cursor }: Event): Promise<void> {
    if (cursor === undefined) return;
    const start = { case: "after" as const, value: cursor };
    const request = { threadId, runId, filter: { channels: [Channel.TASKS] }, start };
    try {
      for await (const { taskId, kind } of this.caller.serverStream(GraphService.method.watch, request)) {
        if (kind.case === "task" && TAKEN.has(kind.value.phase)) this.waiting.delete(taskId);
      }
    } catch {
      // The warning is worth more than the certainty.
    }
  }
}

/** What a task runs. The server names neither the condition nor, of a reducer, the key. */
function describeTask(node: string): string {
  if (node === "") return "the reducer of a key";
  return node === START ? "a condition after START" : `node "${publicName(node)}"`;
}

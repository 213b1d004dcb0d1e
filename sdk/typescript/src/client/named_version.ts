/** The version of a graph that a call names, against the one that its thread is on. */
import { GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import { ThreadState } from "../_gen/graphd/v1/thread_pb.js";
import { ThreadService } from "../_gen/graphd/v1/thread_service_pb.js";
import { type Caller, callRepeatedly } from "../calls/index.js";
import { createGraphdError, type GraphdError, GraphVersionError, isGraphdError } from "../errors/index.js";
import { publicThread } from "../names/index.js";

export type NamedVersionFields = { caller: Caller; graph: string; version: string; thread: string };

type Place = { graph: string; version: string; state: ThreadState };

/**
 * The server compares the version of a run that begins. It takes no version with an answer, and none from who follows
 * a run: there the client compares.
 */
export class NamedVersion {
  constructor(private readonly fields: NamedVersionFields) {}

  /** Throws when the thread is on another version, or belongs to another graph. The refusal is why that matters. */
  async check(refusal?: GraphdError): Promise<void> {
    const { graph, version } = this.fields;
    const runId = refusal?.metadata.activeRunId;
    const place = runId ? await this.readRun(runId) : await this.readThread();
    if (place === undefined || place.graph === "") return;
    if (graph !== "" && place.graph !== graph) throw this.describeOtherGraph(place.graph);
    if (place.version !== version) throw this.describeOtherVersion(place, refusal);
  }

  private async readRun(runId: string): Promise<Place> {
    const { caller, thread: threadId } = this.fields;
    const run = await callRepeatedly(caller, GraphService.method.getRun, { threadId, runId });
    return { graph: run.graph, version: run.graphVersion, state: ThreadState.BUSY };
  }

  private async readThread(): Promise<Place | undefined> {
    const { caller, thread: threadId } = this.fields;
    try {
      const thread = await callRepeatedly(caller, ThreadService.method.getThread, { threadId });
      return { graph: thread.graph, version: thread.graphVersion, state: thread.state };
    } catch (error) {
      if (isGraphdError(error, "THREAD_NOT_FOUND")) return undefined;
      throw error;
    }
  }

  /** As the server says it of a run that begins. */
  private describeOtherGraph(graph: string): GraphdError {
    const thread = publicThread(this.fields.thread);
    const problem = `must be "${graph}" for this thread`;
    return createGraphdError(
      `thread "${thread}" runs graph "${graph}", not "${this.fields.graph}": run.graph: ${problem}`,
      {
        reason: "INVALID_FIELD",
        code: "INVALID_ARGUMENT",
        metadata: { graph, threadId: this.fields.thread },
        violations: { "run.graph": problem },
      },
    );
  }

  private describeOtherVersion({ graph, version, state }: Place, refusal?: GraphdError): GraphVersionError {
    const { thread, version: named } = this.fields;
    return new GraphVersionError(
      `thread "${publicThread(thread)}" is on version "${version}" of graph "${graph}", and the call names version ` +
        `"${named}": ${this.adviseMove(graph, state)}`,
      { metadata: { threadId: thread, graph, version: named, threadVersion: version }, cause: refusal },
    );
  }

  private adviseMove(graph: string, state: ThreadState): string {
    const { thread, version } = this.fields;
    const move = (option = "") =>
      `invoke("${graph}", null, { threadId: "${publicThread(thread)}", version: "${version}"${option} })`;
    if (state === ThreadState.INTERRUPTED) {
      const option = ', openQuestions: "discard"';
      return `answer its questions without the version, or move it, which withdraws them, with ${move(option)}`;
    }
    if (state === ThreadState.BUSY) {
      return `wait for its run without the version, or move it, which cancels that run, with ${move(', whenBusy: "cancel"')}`;
    }
    return `leave the version out, or move it with ${move()}`;
  }
}

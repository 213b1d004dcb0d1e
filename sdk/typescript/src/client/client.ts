/** A client of a server, without a worker: it starts runs, follows them, answers questions and reads states. */
import { GraphView } from "../_gen/graphd/v1/graph_pb.js";
import { CancelRunRequest_Action, GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import { RegistryService } from "../_gen/graphd/v1/registry_service_pb.js";
import { ThreadService } from "../_gen/graphd/v1/thread_service_pb.js";
import { type Caller, type CallOptions, callOnce, callRepeatedly, createId } from "../calls/index.js";
import { publicThread, wireThread } from "../names/index.js";
import { ItemStore } from "../store/index.js";
import type { RunConfig } from "./config.js";
import { type FollowedItem, type FollowRunOptions, followRun } from "./follow_run.js";
import { UNKNOWN_GRAPH } from "./graph_shape.js";
import { Inbox } from "./inbox.js";
import { NamedVersion } from "./named_version.js";
import { listPages } from "./pages.js";
import { type Run, readRun } from "./run.js";
import { beginRun, invokeRun, type RunCall, streamRun } from "./run_call.js";
import { type OpenQuestions, openPolicyOf, type WhenBusy, whenBusyPolicyOf } from "./run_policies.js";
import type { PlaceConfig, StateSnapshot } from "./snapshots.js";
import { formatChunk, readStreamFormat } from "./stream_format.js";
import { readStreamModes, type StreamMode } from "./stream_modes.js";
import {
  getThreadState,
  type HistoryOptions,
  listThreadStates,
  type StateUpdate,
  type ThreadPlace,
  updateThreadState,
} from "./thread_states.js";

export type RunOptions = RunConfig & {
  /** The thread; a new one when it is left out. */
  threadId?: string | undefined;
  /**
   * Version of the graph; that of the thread, or the newest. A call that answers, joins a run or withdraws questions is
   * refused with `GraphVersionError` where the thread is on another one.
   */
  version?: string | undefined;
  /** Milliseconds after which the run begins; it is queued until then, and other runs of the thread go before it. */
  beginAfter?: number | undefined;
  /**
   * What a run does that is to begin while another run of the thread is active: it is refused, waits behind that one,
   * or cancels it and keeps (`cancel`) or removes (`rollback`) its checkpoints. Left out, a call that brings nothing
   * joins that run, and others are refused.
   */
  whenBusy?: WhenBusy | undefined;
  /**
   * What a run does that is to begin while questions are open: it is refused, withdraws them, or waits until they are
   * answered. Left out, it withdraws them.
   */
  openQuestions?: OpenQuestions | undefined;
  interruptBefore?: readonly string[] | undefined;
  interruptAfter?: readonly string[] | undefined;
  outputKeys?: string | readonly string[] | undefined;
};

export type StreamOptions = RunOptions & {
  /** What to show: `updates` when it is left out. */
  streamMode?: StreamMode | readonly StreamMode[] | undefined;
  /** Shows what happens in subgraphs, too. */
  subgraphs?: boolean | undefined;
};

/** A version of a graph that the server has. */
export type Graph = { name: string; version: string; versions: string[]; description: string };

export type ThreadSummary = { threadId: string; graph: string; version: string };

export class Client {
  /** The questions of all threads. */
  readonly inbox: Inbox;
  /** Items that outlive threads, which nodes reach by `GraphdStore`. */
  readonly store: ItemStore;

  constructor(
    private readonly caller: Caller & { close?(): void },
    private readonly findEnclosingRun?: () => string | undefined,
  ) {
    this.inbox = new Inbox(caller);
    this.store = new ItemStore(async () => caller);
  }

  /**
   * Runs a graph to its stop, and returns its state then, with `__interrupt__` when people are asked. The input is
   * a part of the state, `null` to go on, or a `Command` with an answer.
   */
  async invoke(graph: string, input: unknown, options: RunOptions = {}): Promise<any> {
    return await invokeRun(this.createCall(graph, input, options));
  }

  /** Runs a graph, and yields what happens. Leaving the iteration leaves the run as it is. */
  async *stream(
    graph: string,
    input: unknown,
    options: StreamOptions = {},
  ): AsyncGenerator<any, void, undefined> {
    const { streamMode = "updates", subgraphs = false } = options;
    const modes = readStreamModes(streamMode);
    const format = readStreamFormat(streamMode, subgraphs);
    const call = { ...this.createCall(graph, input, options), modes, subgraphs, stored: true };
    for await (const item of streamRun(call)) yield formatChunk(item, format);
  }

  /** Starts a run, or goes on with one, by what `invoke` takes. Returns it at once. */
  async start(graph: string, input: unknown, options: RunOptions = {}): Promise<Run> {
    return readRun(await beginRun(this.createCall(graph, input, options)));
  }

  /** Yields what happens in a run from its beginning, or after the cursor of an item; ends with the run. */
  follow(
    threadId: string,
    runId: string,
    options: FollowRunOptions = {},
  ): AsyncGenerator<FollowedItem, void, undefined> {
    return followRun(this.caller, wireThread(threadId), runId, options);
  }

  async getRun(threadId: string, runId: string): Promise<Run> {
    const request = { threadId: wireThread(threadId), runId };
    return readRun(await callRepeatedly(this.caller, GraphService.method.getRun, request));
  }

  /** Lists the runs of a thread, newest first. */
  listRuns(threadId: string): AsyncGenerator<Run, void, undefined> {
    return listPages(async (pageToken) => {
      const request = { threadId: wireThread(threadId), pageToken };
      const page = await callRepeatedly(this.caller, GraphService.method.listRuns, request);
      return { items: page.runs.map(readRun), nextPageToken: page.nextPageToken };
    });
  }

  /** Waits until a run stops: the newest of its thread, or the one that is named. */
  async wait(threadId: string, runId = "", options: CallOptions = {}): Promise<Run> {
    const request = { threadId: wireThread(threadId), runId };
    return readRun(await callRepeatedly(this.caller, GraphService.method.waitRun, request, options));
  }

  /** Asks a run to stop: the active one of its thread, or the one that is named. */
  async cancel(threadId: string, runId = "", reason = ""): Promise<Run> {
    const request = { threadId: wireThread(threadId), runId, reason, action: CancelRunRequest_Action.KEEP };
    return readRun(await callRepeatedly(this.caller, GraphService.method.cancelRun, request));
  }

  /** The newest state of a thread, or that of the checkpoint in the config. */
  async getState(config: RunConfig, options: { subgraphs?: boolean } = {}): Promise<StateSnapshot> {
    return await getThreadState(this.placeOf(config), options);
  }

  /** The states of a thread, newest first. */
  getStateHistory(
    config: RunConfig,
    options: HistoryOptions = {},
  ): AsyncGenerator<StateSnapshot, void, undefined> {
    return listThreadStates(this.placeOf(config), options);
  }

  /** Writes to the state of a thread, as the node would. */
  async updateState(config: RunConfig, values: unknown, asNode?: string): Promise<PlaceConfig> {
    return await updateThreadState(this.placeOf(config), [[{ values, asNode }]]);
  }

  /** Writes one checkpoint per superstep; returns the config of the last. */
  async bulkUpdateState(
    config: RunConfig,
    supersteps: readonly (readonly StateUpdate[])[],
  ): Promise<PlaceConfig> {
    return await updateThreadState(this.placeOf(config), supersteps);
  }

  /** Lists threads, the last changed first. */
  listThreads(filter = ""): AsyncGenerator<ThreadSummary, void, undefined> {
    return listPages(async (pageToken) => {
      const page = await callRepeatedly(this.caller, ThreadService.method.listThreads, { filter, pageToken });
      const items = page.threads.map(({ threadId, graph, graphVersion: version }) => {
        return { threadId: publicThread(threadId), graph, version };
      });
      return { items, nextPageToken: page.nextPageToken };
    });
  }

  /** Deletes a thread with its history. */
  async deleteThread(threadId: string): Promise<void> {
    const request = { threadId: wireThread(threadId) };
    await callRepeatedly(this.caller, ThreadService.method.deleteThread, request);
  }

  /** Checks a graph file, YAML or JSON, and keeps it under its version. The same again changes nothing. */
  async putGraph(document: string): Promise<Graph> {
    const definition = { case: "document" as const, value: document };
    return readGraph(await callOnce(this.caller, RegistryService.method.putGraph, { definition }));
  }

  async getGraph(name: string, version = ""): Promise<Graph> {
    const request = { graph: name, version, view: GraphView.BASIC };
    return readGraph(await callRepeatedly(this.caller, RegistryService.method.getGraph, request));
  }

  /** Lists the newest version of each graph, by name. */
  listGraphs(): AsyncGenerator<Graph, void, undefined> {
    return listPages(async (pageToken) => {
      const page = await callRepeatedly(this.caller, RegistryService.method.listGraphs, { pageToken });
      return { items: page.graphs.map(readGraph), nextPageToken: page.nextPageToken };
    });
  }

  /** Closes the connection, when no call is under way any more. */
  close(): void {
    this.caller.close?.();
  }

  private createCall(graph: string, input: unknown, options: RunOptions): RunCall {
    const {
      threadId,
      version = "",
      beginAfter,
      whenBusy,
      openQuestions,
      interruptBefore,
      interruptAfter,
      outputKeys,
      ...config
    } = options;
    const id = threadId ?? config.configurable?.thread_id ?? createId();
    const configurable = { ...config.configurable, thread_id: id };
    const { caller } = this;
    const thread = wireThread(id);
    return {
      caller,
      input,
      named: version === "" ? undefined : new NamedVersion({ caller, graph, version, thread }),
      outputKeys,
      enclosingRunId: this.findEnclosingRun?.(),
      spec: {
        graph,
        version,
        shape: UNKNOWN_GRAPH,
        thread,
        config: { ...config, configurable },
        beginAfter,
        whenBusy: whenBusyPolicyOf(whenBusy),
        openQuestions: openPolicyOf(openQuestions, version),
        interruptBefore,
        interruptAfter,
      },
    };
  }

  private placeOf(config: RunConfig): ThreadPlace {
    const thread = wireThread(config.configurable?.thread_id ?? "");
    return { caller: this.caller, shape: UNKNOWN_GRAPH, graph: "", version: "", thread, config };
  }
}

type WireGraph = { graph: string; version: string; versions: string[]; description: string };

function readGraph({ graph: name, version, versions, description }: WireGraph): Graph {
  return { name, version, versions, description };
}

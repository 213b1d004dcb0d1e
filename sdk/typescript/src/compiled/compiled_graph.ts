/** Compiled graphs: running them, and reading and writing their states. */
import { randomUUID } from "node:crypto";
import {
  getThreadState,
  type HistoryOptions,
  invokeRun,
  listThreadStates,
  type PlaceConfig,
  readStreamModes,
  type StateUpdate,
  type StreamItem,
  selectKeys,
  streamRun,
  type ThreadPlace,
  updateThreadState,
  writeInput,
} from "../client/index.js";
import { isStream } from "../codec/index.js";
import { EmptyInputError, GraphValueError, InvalidUpdateError } from "../errors/index.js";
import { loadMessageClasses } from "../messages/restored_message.js";
import {
  enclosingRunId,
  type InferInterruptInputType,
  type InferInterruptResumeType,
  type InferWriterType,
  type LocalRun,
  matchesFailure,
  registerCall,
  TEMPORARY,
} from "../runtime/index.js";
import type { ExtractStateType, ExtractUpdateType, StateDefinition } from "../state/index.js";
import {
  type Command,
  type Interrupt,
  isCommand,
  isInterrupted,
  type RunnableConfig,
} from "../values/index.js";
import {
  checkRecursionLimit,
  type InvokeOptions,
  mergeConfigs,
  type StreamOptions,
  timeCall,
} from "./call_config.js";
import { checkContext, checkInput, checkStateUpdate } from "./checked_values.js";
import { formatChunk, formatServerSentEvent } from "./chunk_format.js";
import { drainedError, GraphDrained, watchControl } from "./drained_run.js";
import { type DrawableGraph, drawGraph } from "./drawn_graph.js";
import { IterableReadableStream } from "./iterable_stream.js";
import { callNested, enclosingTask } from "./nested_call.js";
import { nodeNames } from "./options.js";
import { ProgramShape } from "./program_shape.js";
import { RunnableGraph } from "./runnable_graph.js";
import { callerOf, deleteThread } from "./servers.js";
import type { StateSnapshot, StreamMode, StreamOutputMap } from "./stream_types.js";

type Input<I, U, N extends string, InterruptType> =
  | ExtractUpdateType<I>
  | Command<InferInterruptResumeType<InterruptType>, U, Exclude<N, "__start__">>
  | null;

/** A call that is ready to be made. */
type PreparedCall = {
  run: Parameters<typeof invokeRun>[0];
  isStored: boolean;
  /** Says that the call has ended. */
  release(): Promise<void>;
};

/**
 * A graph that can be run. `S` is its state, `U` what nodes write and `N` their names. `I`, `O` and `C` declare its
 * input, output and context; `Results` has what the nodes return.
 */
export class CompiledStateGraph<
  S = any,
  U = any,
  N extends string = any,
  I = StateDefinition,
  O = StateDefinition,
  C = any,
  Results = unknown,
  InterruptType = unknown,
  WriterType = unknown,
  _Transformers = [],
> extends RunnableGraph<
  Input<I, U, N, InterruptType>,
  ExtractStateType<O>,
  InvokeOptions<ExtractStateType<C>>
> {
  declare readonly StateType: S;
  declare readonly OutputType: ExtractStateType<O>;

  private readonly shape = new ProgramShape(this.program);

  /**
   * Runs the graph to its end or to its questions; returns the state. Open questions are under `__interrupt__`;
   * `new Command({ resume })` as the input of the next call answers them.
   */
  async invoke(
    input: Input<I, U, N, InterruptType>,
    options?: InvokeOptions<ExtractStateType<C>>,
  ): Promise<ExtractStateType<O>> {
    const merged = mergeConfigs(this.config, options);
    const modes = merged.streamMode;
    if (modes !== undefined && modes !== "values") return (await this.collectChunks(input, merged)) as never;
    const task = enclosingTask(options);
    if (task !== undefined) {
      const attachment = this.attach(task.host.address);
      const { shape, persistence } = this;
      const output = await callNested({ task, attachment, persistence, shape, input, options: merged });
      const values = output === undefined ? {} : shape.decodeState(output);
      return selectKeys(values, merged.outputKeys ?? shape.shownKeys) as never;
    }
    const call = await this.prepareCall(input, merged);
    try {
      const result = await invokeRun(call.run);
      if (!call.isStored) refuseToWait(result);
      return result as never;
    } catch (error) {
      throw drainedError(merged.control, error);
    } finally {
      await call.release();
    }
  }

  private async collectChunks(input: unknown, options: InvokeOptions): Promise<unknown[]> {
    const chunks: unknown[] = [];
    for await (const chunk of await this.stream(input as never, options as never)) chunks.push(chunk);
    return chunks;
  }

  /** Runs the graph, and yields what happens as it happens. Leaving the loop leaves the run as it is. */
  async stream<
    const M extends StreamMode | readonly StreamMode[] | undefined = undefined,
    Sub extends boolean = false,
    E extends "text/event-stream" | undefined = undefined,
  >(
    input: Input<I, U, N, InterruptType>,
    options?: StreamOptions<M, Sub, E, ExtractStateType<C>>,
  ): Promise<
    IterableReadableStream<
      StreamOutputMap<M, Sub, U, ExtractStateType<O>, N, Results, InferWriterType<WriterType>, E>
    >
  > {
    const merged = mergeConfigs(this.config, options as RunnableConfig) as StreamOptions<any, any, any>;
    return IterableReadableStream.from(this.chunks(input, merged, options as RunnableConfig)) as never;
  }

  private async *chunks(
    input: unknown,
    options: StreamOptions<StreamMode | readonly StreamMode[], boolean, unknown>,
    given: RunnableConfig | undefined,
  ): AsyncGenerator<unknown> {
    const { streamMode = "updates", subgraphs = false, encoding } = options;
    const modes = readStreamModes(streamMode);
    const format = { isSingle: typeof streamMode === "string", subgraphs };
    for await (const item of this.items(input, options as InvokeOptions, given, modes, subgraphs)) {
      yield encoding === "text/event-stream"
        ? formatServerSentEvent(item, subgraphs)
        : formatChunk(item, format);
    }
  }

  private async *items(
    input: unknown,
    options: InvokeOptions,
    given: RunnableConfig | undefined,
    modes: readonly StreamMode[],
    subgraphs: boolean,
  ): AsyncGenerator<StreamItem> {
    if (enclosingTask(given) !== undefined) {
      const data = await this.invoke(input as never, { ...options, streamMode: "values" } as InvokeOptions);
      if (modes.includes("values")) yield { mode: "values", levels: [], data };
      return;
    }
    const call = await this.prepareCall(input, options);
    try {
      for await (const item of streamRun({ ...call.run, modes, subgraphs, stored: call.isStored })) {
        if (!call.isStored) refuseToWait(item.data);
        yield item;
      }
    } catch (error) {
      throw drainedError(options.control, error);
    } finally {
      await call.release();
    }
  }

  private async prepareCall(input: unknown, given: InvokeOptions): Promise<PreparedCall> {
    const { control } = given;
    // A run that can be asked to stop has an id from the beginning.
    const options = timeCall(control ? { ...given, runId: given.runId ?? randomUUID() } : given);
    checkGiven(input);
    checkRecursionLimit(options.recursionLimit);
    const thread = this.threadOf(options);
    const isStored = thread !== undefined;
    if (!isStored && isCommand(input) && input.resume !== undefined) {
      throw new GraphValueError(
        "Command({ resume }) needs a thread that is kept, and the graph has no checkpointer",
        {
          lc_error_code: "MISSING_CHECKPOINTER",
        },
      );
    }
    const { program, shape } = this;
    checkContext(program, options, input !== null);
    const checked = await checkInput(program, input);
    const [address] = await Promise.all([this.findServer(), loadMessageClasses()]);
    const wire = thread ?? TEMPORARY + randomUUID();
    const { security, worker } = this.compileOptions;
    const attachment = worker === false ? undefined : this.attach(address);
    const letGo = attachment?.hold();
    const local: LocalRun = {
      config: options,
      context: options.context,
      store: this.store,
      errors: [],
      runId: "",
    };
    const forget = registerCall(address, wire, local);
    const unwatch = watchControl(control, callerOf(address, security), wire, options.runId ?? "");
    const release = async () => {
      unwatch();
      forget();
      if (!isStored) await deleteThread(address, wire, security).catch(() => {});
      letGo?.();
    };
    try {
      const version = (await attachment?.untilReady()) ?? "";
      const caller = callerOf(address, security);
      if (control?.drainRequested) {
        const place = { caller, shape, graph: program.name, version, thread: wire, config: options };
        if (isStored && !isCommand(checked) && checked !== null) await writeInput(place, checked);
        throw new GraphDrained(control.drainReason ?? "");
      }
      return {
        isStored,
        release,
        run: {
          caller,
          input: checked,
          outputKeys: options.outputKeys,
          onRun: (runId) => {
            local.runId = runId;
          },
          enclosingRunId: enclosingRunId(),
          onJoin: () => {
            local.isJoined = true;
          },
          findThrown: (failure) => local.errors.findLast((error) => matchesFailure(failure, error)),
          spec: {
            graph: program.name,
            version,
            shape,
            thread: wire,
            config: options,
            interruptBefore: nodeNames(options.interruptBefore),
            interruptAfter: nodeNames(options.interruptAfter),
          },
        },
      };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** The newest state of a thread, or that of the checkpoint which the config names. */
  async getState(config: RunnableConfig, options: { subgraphs?: boolean } = {}): Promise<StateSnapshot> {
    return await this.withPlace(config, (place) => getThreadState(place, options));
  }

  /** The states of a thread, newest first. */
  async *getStateHistory(
    config: RunnableConfig,
    options: HistoryOptions = {},
  ): AsyncIterableIterator<StateSnapshot> {
    const { place, release } = await this.openPlace(config);
    try {
      yield* listThreadStates(place, options);
    } finally {
      release();
    }
  }

  /** Writes to the state of a thread, as a node could have; returns the config of the new checkpoint. */
  async updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<PlaceConfig> {
    return await this.bulkUpdateState(config, [{ updates: [{ values, asNode }] }]);
  }

  /** Writes what several nodes could have written, superstep by superstep. */
  async bulkUpdateState(
    config: RunnableConfig,
    supersteps: { updates: StateUpdate[] }[],
  ): Promise<PlaceConfig> {
    const checked = await Promise.all(
      supersteps.map(({ updates }) =>
        Promise.all(updates.map((update) => checkStateUpdate(this.program, config, update))),
      ),
    );
    return await this.withPlace(config, (place) => updateThreadState(place, checked));
  }

  private async withPlace<T>(config: RunnableConfig, use: (place: ThreadPlace) => Promise<T>): Promise<T> {
    const { place, release } = await this.openPlace(config);
    try {
      return await use(place);
    } finally {
      release();
    }
  }

  private async openPlace(given: RunnableConfig): Promise<{ place: ThreadPlace; release: () => void }> {
    const config = mergeConfigs(this.config, given);
    const thread = this.threadOf(config);
    if (thread === undefined) {
      throw new GraphValueError(
        "the graph has no checkpointer: a state is kept with a server or a saver, and under a thread_id",
        { lc_error_code: "MISSING_CHECKPOINTER" },
      );
    }
    const [address] = await Promise.all([this.findServer(), loadMessageClasses()]);
    const { security, worker } = this.compileOptions;
    // Updates may need a router of the graph, and a thread that is new needs its version.
    const attachment = worker === false ? undefined : this.attach(address);
    const release = attachment?.hold() ?? (() => {});
    try {
      const version = (await attachment?.untilReady()) ?? "";
      const caller = callerOf(address, security);
      return {
        place: { caller, shape: this.shape, graph: this.program.name, version, thread, config },
        release,
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Whether a result of the graph says that people are asked. */
  isInterrupted(
    values: unknown,
  ): values is { __interrupt__: Interrupt<InferInterruptInputType<InterruptType>>[] } {
    return isInterrupted(values);
  }

  /** The graph as a drawing: `drawMermaid()`. `xray` opens subgraphs. */
  getGraph(options: { xray?: boolean | number } = {}): DrawableGraph {
    return drawGraph(this.program, options.xray ?? false);
  }

  async getGraphAsync(options: { xray?: boolean | number } = {}): Promise<DrawableGraph> {
    return this.getGraph(options);
  }
}

function checkGiven(input: unknown): void {
  if (input === undefined)
    throw new EmptyInputError("the input is undefined: want keys of the state, null to go on, or a Command");
  if (isStream(input))
    throw new InvalidUpdateError(
      "the input is a stream: read it to its end, and give what it brought; transform() takes parts of an input",
    );
}

/** A run whose thread is forgotten can't wait for people. */
function refuseToWait(shown: unknown): void {
  if (
    typeof shown === "object" &&
    shown !== null &&
    "__interrupt__" in shown &&
    (shown.__interrupt__ as unknown[]).length > 0
  ) {
    throw new GraphValueError(
      "a node asks, and there is no checkpointer that keeps the thread until it is answered",
      {
        lc_error_code: "MISSING_CHECKPOINTER",
      },
    );
  }
}

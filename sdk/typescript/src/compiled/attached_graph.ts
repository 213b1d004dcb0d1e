/** A compiled graph and the servers that it is attached to. */
import { isMemorySaver } from "../checkpoint/index.js";
import type { CompiledGraph, GraphBuilder, Persistence } from "../declare/index.js";
import { Program, validateGraph, validatePart } from "../declare/index.js";
import { GraphValueError } from "../errors/index.js";
import { wireThread } from "../names/index.js";
import { checkDriftIgnore } from "../runtime/index.js";
import { serverOfEnvironment } from "../transport/index.js";
import type { BaseStore, RunnableConfig } from "../values/index.js";
import { Attachment } from "./attachment.js";
import { mergeConfigs } from "./call_config.js";
import { deriveName } from "./derived_name.js";
import { type CompileOptions, checkPart, checkSaver, nodeNames } from "./options.js";
import { deleteSavedThread, localServer } from "./servers.js";

const NO_WORKER = "the graph was compiled with worker: false, so this process does not work for a server";

export class AttachedGraph implements CompiledGraph {
  readonly lg_is_pregel = true;
  readonly lc_runnable = true;
  readonly program: Program;
  /** Defaults of its calls. */
  config: RunnableConfig = {};
  private readonly attachments: Map<string, Attachment>;

  constructor(
    readonly builder: GraphBuilder,
    readonly compileOptions: CompileOptions = {},
  ) {
    const options = compileOptions;
    const interruptBefore = nodeNames(options.interruptBefore);
    const interruptAfter = nodeNames(options.interruptAfter);
    const { partOf } = options;
    checkPart(options);
    if (partOf === undefined) validateGraph(builder, [...interruptBefore, ...interruptAfter]);
    else validatePart(builder);
    checkSaver(options.checkpointer);
    const name = partOf ?? options.name;
    this.program = new Program(builder, {
      name: name ?? deriveName(builder),
      isPart: partOf !== undefined,
      publicName: name ?? "LangGraph",
      version: options.version ?? "",
      interruptBefore,
      interruptAfter,
      cache: options.cache,
      store: options.store,
      drift: options.drift,
      driftIgnore: checkDriftIgnore(options.driftIgnore ?? []),
    });
    this.attachments = new Map();
    if (isMemorySaver(options.checkpointer)) options.checkpointer.deletion = deleteSavedThread;
    if (options.server !== undefined && options.worker !== false) this.attach(options.server);
  }

  /** The name that the graph was given. */
  get name(): string {
    return this.program.options.publicName;
  }

  getName(): string {
    return this.name;
  }

  get description(): string | undefined {
    return this.compileOptions.description;
  }

  get checkpointer(): unknown {
    return this.compileOptions.checkpointer;
  }

  get store(): BaseStore | undefined {
    return this.compileOptions.store;
  }

  /** How the graph keeps its state when it is part of another one. */
  get persistence(): Persistence {
    if (this.checkpointer === true) return "persist";
    return this.checkpointer === false ? "disabled" : "inherit";
  }

  /** Milliseconds that one superstep may take. */
  get stepTimeout(): number | undefined {
    return this.program.stepTimeout;
  }

  set stepTimeout(milliseconds: number | undefined) {
    this.program.stepTimeout = milliseconds;
  }

  /** The server that a program has named; empty when it has named none. */
  private get namedServer(): string {
    const { server, checkpointer } = this.compileOptions;
    return server ?? (isMemorySaver(checkpointer) ? checkpointer.server : serverOfEnvironment());
  }

  /** Where the server is; starts a local one when none is named. */
  protected async findServer(): Promise<string> {
    return this.namedServer || (await localServer());
  }

  /** Threads are kept. */
  protected get isStored(): boolean {
    if (this.checkpointer === true) {
      throw new GraphValueError(
        "checkpointer: true is for subgraphs; a root graph needs a server or a saver",
      );
    }
    return this.namedServer !== "" || isMemorySaver(this.checkpointer);
  }

  /** The thread of a call as the server knows it; `undefined` when none is kept. */
  protected threadOf(config: RunnableConfig): string | undefined {
    const thread: unknown = config.configurable?.thread_id;
    if (!this.isStored) return undefined;
    const { checkpointer } = this;
    if (thread === undefined || thread === null) {
      if (!isMemorySaver(checkpointer)) return undefined;
      throw new GraphValueError(
        'a graph with a checkpointer needs the id of a thread: invoke(input, { configurable: { thread_id: "1" } })',
      );
    }
    return wireThread(thread, isMemorySaver(checkpointer) ? checkpointer.prefix : "");
  }

  /** Makes this process work for the graph in a server. The first call does it otherwise. */
  protected attach(address: string): Attachment {
    const known = this.attachments.get(address);
    if (known !== undefined && !known.isOver) return known;
    const { server, security } = this.compileOptions;
    const made = new Attachment(this.program, address, security, address === server);
    this.attachments.set(address, made);
    return made;
  }

  /** Connects to the server. Once it resolves the server has the graph, and others can call it by its name. */
  async connect(): Promise<void> {
    if (this.compileOptions.worker === false) throw new GraphValueError(NO_WORKER);
    await this.attach(await this.findServer()).untilReady();
  }

  /**
   * Works for the server until the process is told to end, or the server wants this worker no more. A server that is
   * not there yet is waited for.
   */
  async serve(): Promise<void> {
    if (this.namedServer === "") {
      throw new GraphValueError(
        'serve() works for a server: compile({ server: "host:port" }), or set GRAPHD_SERVER',
      );
    }
    if (this.compileOptions.worker === false) throw new GraphValueError(NO_WORKER);
    const attachment = this.attach(this.namedServer);
    attachment.isLasting = true;
    const leave = () => void attachment.close(20_000);
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, leave);
    try {
      await attachment.untilTaken();
      await attachment.untilClosed();
    } finally {
      for (const signal of ["SIGTERM", "SIGINT"] as const) process.removeListener(signal, leave);
    }
  }

  /** Takes no more work; lets running nodes finish for so many milliseconds. */
  async detach(grace = 0): Promise<void> {
    const open = [...this.attachments.values()];
    this.attachments.clear();
    await Promise.all(open.map((one) => one.close(grace)));
  }

  /** The same graph, on the same worker, with defaults for the config of its calls. */
  withConfig(config: RunnableConfig): this {
    const bound = Object.create(this) as this;
    bound.config = mergeConfigs(this.config, config);
    return bound;
  }
}

/** Building graphs, with the methods that LangGraph.js programs use. */
import { CompiledStateGraph, type CompileOptions } from "../compiled/index.js";
import { END, START } from "../constants.js";
import {
  type NodeOptions as BuilderNodeOptions,
  GraphBuilder,
  type PolicyOptions,
  type RunnableLike,
  refuseGraph,
} from "../declare/index.js";
import type {
  AnyLegacyChannels,
  LegacyChannels,
  LegacyState,
  StateInput,
  StateOf,
  UpdateOf,
} from "../state/index.js";
import type {
  CachePolicy,
  Command,
  LangGraphRunnableConfig,
  RetryPolicy,
  Send,
  TimeoutPolicy,
} from "../values/index.js";

type MaybePromise<T> = T | Promise<T>;
type NodeResult<U> =
  | U
  | Command<any, any, any>
  | readonly (Command<any, any, any> | Send | U)[]
  | undefined
  | null
  // biome-ignore lint/suspicious/noConfusingVoidType: a node may return nothing
  | void;

/** The code of a node. */
export type NodeFunction<S, U, C> = (
  state: S,
  config: LangGraphRunnableConfig<C>,
) => MaybePromise<NodeResult<U>>;
/** What a node may be: a function, a runnable, or a compiled graph. */
export type NodeAction<S, U, C> =
  | NodeFunction<S, U, C>
  | RunnableLike<any, any>
  | CompiledStateGraph<any, any, any, any, any, any>;

export type AddNodeOptions<NodeInput = unknown> = {
  /** Nodes that its commands may lead to. */
  ends?: readonly string[] | Readonly<Record<string, string>>;
  retryPolicy?: RetryPolicy;
  cachePolicy?: CachePolicy | boolean;
  /** Waits until nothing else is left to do. */
  defer?: boolean;
  metadata?: Record<string, unknown>;
  /** What the node reads, when that is not the state. */
  input?: NodeInput;
  subgraphs?: readonly unknown[];
  /** Milliseconds that an attempt may take. */
  timeout?: number | TimeoutPolicy;
  /** Takes over when the node has failed for good. */
  errorHandler?: (state: any, error: any, config?: any) => unknown;
};

type Route = string | Send<any, any>;
type Router<S, C> =
  | ((state: S, config: LangGraphRunnableConfig<C>) => MaybePromise<Route | readonly Route[]>)
  | RunnableLike<any, any>;
type PathMap<N extends string> = readonly (N | typeof END)[] | Readonly<Record<string, N | typeof END>>;

type NodesOf<N extends string> = Exclude<N, typeof START>;

/** A graph under construction. */
export class StateGraphBuilder<
  SD = unknown,
  S = StateOf<SD>,
  U = UpdateOf<SD>,
  N extends string = typeof START,
  I = U,
  O = S,
  C = any,
> {
  declare readonly Definition: SD;
  /** What of it has no types. */
  readonly builder: GraphBuilder;

  constructor(given: unknown, options?: unknown) {
    this.builder = new GraphBuilder(given, options);
  }

  get nodes(): Readonly<Record<string, unknown>> {
    return this.builder.nodes;
  }

  get edges(): Set<[string, string]> {
    return new Set(
      this.builder.edgeList.flatMap(({ sources, target }) =>
        sources.map((one): [string, string] => [one, target]),
      ),
    );
  }

  addNode<K extends string, In extends StateInput>(
    name: K,
    action: NodeAction<StateOf<In>, U, C>,
    options: AddNodeOptions<In> & { input: In },
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C>;
  addNode<K extends string>(
    name: K,
    action: NodeAction<S, U, C>,
    options?: AddNodeOptions,
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C>;
  addNode<K extends string>(
    nodes: Record<K, NodeAction<S, U, C>>,
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C>;
  addNode<K extends string>(
    nodes: readonly (readonly [K, NodeAction<S, U, C>, AddNodeOptions?])[],
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C>;
  addNode(first: unknown, action?: unknown, options?: AddNodeOptions): any {
    for (const [name, target, own] of readNodes(first, action, options)) {
      this.builder.declareNode(name, target, own as BuilderNodeOptions);
    }
    return this;
  }

  /** Adds nodes that run one after the other. */
  addSequence<K extends string>(
    nodes: readonly (readonly [K, NodeAction<S, U, C>, AddNodeOptions?])[] | Record<K, NodeAction<S, U, C>>,
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C> {
    const given = readNodes(nodes);
    if (given.length === 0) throw refuseGraph("a sequence needs at least one node");
    given.forEach(([name, target, own], at) => {
      this.builder.declareNode(name, target, own as BuilderNodeOptions);
      const before = given[at - 1];
      if (before) this.builder.declareEdge(before[0], name);
    });
    return this as never;
  }

  /** Leads from a node to another; from a list of nodes, waits for all of them. */
  addEdge(from: N | typeof START | readonly N[], to: NodesOf<N> | typeof END): this {
    this.builder.declareEdge(from as string | readonly string[], to);
    return this;
  }

  /**
   * Lets a function decide where to go after a node: names of nodes, END, or Sends. A `pathMap` leads from what it
   * returns to nodes.
   */
  addConditionalEdges(source: N | typeof START, path: Router<S, C>, pathMap?: PathMap<NodesOf<N>>): this;
  addConditionalEdges(branch: {
    source: N | typeof START;
    path: Router<S, C>;
    pathMap?: PathMap<NodesOf<N>>;
  }): this;
  addConditionalEdges(source: unknown, path?: unknown, pathMap?: PathMap<NodesOf<N>>): this {
    const branch =
      typeof source === "string"
        ? { source, path, pathMap }
        : (source as { source: string; path: unknown; pathMap?: PathMap<NodesOf<N>> });
    this.builder.declareBranch(branch.source, branch.path, branch.pathMap);
    return this;
  }

  /** Sets the policies of nodes that have none of their own. */
  setNodeDefaults(
    options: Pick<AddNodeOptions, "retryPolicy" | "cachePolicy" | "timeout" | "errorHandler">,
  ): this {
    this.builder.declareDefaults(options as PolicyOptions);
    return this;
  }

  /** The same as `addEdge(START, name)`. */
  setEntryPoint(name: NodesOf<N>): this {
    this.builder.declareEdge(START, name);
    return this;
  }

  /** The same as `addEdge(name, END)`. */
  setFinishPoint(name: NodesOf<N>): this {
    this.builder.declareEdge(name, END);
    return this;
  }

  /** The graph, ready to run. Throws for the first mistake in it. */
  compile(options: CompileOptions = {}): CompiledStateGraph<S, U, N, I, O, C> {
    return new CompiledStateGraph<S, U, N, I, O, C>(this.builder, options);
  }
}

type NodeEntry = readonly [string, unknown, AddNodeOptions?];

function readNodes(first: unknown, action?: unknown, options?: AddNodeOptions): readonly NodeEntry[] {
  if (typeof first === "string") return [[first, action, options]];
  if (Array.isArray(first)) return first as NodeEntry[];
  if (typeof first === "object" && first !== null) return Object.entries(first);
  throw refuseGraph(
    "addNode takes a name and an action, an object of actions, or a list of [name, action] pairs",
  );
}

type Fields<SI, SO, SC> = { input?: SI; output?: SO; context?: SC };
type InputOf<SI, Default> = [SI] extends [never] ? Default : UpdateOf<SI>;
type OutputOf<SO, Default> = [SO] extends [never] ? Default : StateOf<SO>;
type ContextOf<SC> = [SC] extends [never] ? any : StateOf<SC>;
type Built<SD, SI, SO, SC> = StateGraphBuilder<
  SD,
  StateOf<SD>,
  UpdateOf<SD>,
  typeof START,
  InputOf<SI, UpdateOf<SD>>,
  OutputOf<SO, StateOf<SD>>,
  ContextOf<SC>
>;

/** How graphs are begun: by an annotation, a schema, or channels. */
export interface StateGraphConstructor {
  new <D extends AnyLegacyChannels>(fields: {
    channels: D;
  }): StateGraphBuilder<
    LegacyState<D>,
    LegacyState<D>,
    Partial<LegacyState<D>>,
    typeof START,
    Partial<LegacyState<D>>,
    LegacyState<D>,
    any
  >;
  new <SD extends object>(fields: {
    channels: LegacyChannels<SD>;
  }): StateGraphBuilder<SD, SD, Partial<SD>, typeof START, Partial<SD>, SD, any>;
  new <
    SD extends StateInput,
    SI extends StateInput = never,
    SO extends StateInput = never,
    SC extends StateInput = never,
  >(
    fields: ({ stateSchema: SD } | { state: SD }) & Fields<SI, SO, SC>,
  ): Built<SD, SI, SO, SC>;
  new <
    SD extends StateInput,
    SI extends StateInput = never,
    SO extends StateInput = never,
    SC extends StateInput = never,
  >(
    state: SD,
    options: Fields<SI, SO, SC>,
  ): Built<SD, SI, SO, SC>;
  new <SD extends StateInput, SC extends StateInput = never>(
    state: SD,
    context?: SC,
  ): Built<SD, never, never, SC>;
  new <SD>(state: any, options?: any): StateGraphBuilder<SD>;
}

/** A graph under construction: `new StateGraph(Annotation.Root({ … }))`. */
export const StateGraph: StateGraphConstructor = StateGraphBuilder as unknown as StateGraphConstructor;
export type StateGraph<
  SD = unknown,
  S = StateOf<SD>,
  U = UpdateOf<SD>,
  N extends string = typeof START,
  I = U,
  O = S,
  C = any,
> = StateGraphBuilder<SD, S, U, N, I, O, C>;

/** The code of a node of a graph that an annotation or a schema declares. */
export type GraphNode<SD, C = any> = NodeFunction<StateOf<SD>, UpdateOf<SD>, C>;

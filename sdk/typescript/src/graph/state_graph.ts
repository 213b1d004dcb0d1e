/** Building graphs, with the methods that LangGraph.js programs use. */
import { CompiledStateGraph, type CompileOptions } from "../compiled/index.js";
import { END, START } from "../constants.js";
import {
  type NodeOptions as BuilderNodeOptions,
  GraphBuilder,
  type PolicyOptions,
  refuseGraph,
  validateGraph,
} from "../declare/index.js";
import type { ExtractStateType, ExtractUpdateType, StateInput, StateOf } from "../state/index.js";
import type {
  AddNodeOptions,
  NodeAction,
  NodeFunction,
  NodeResult,
  PathMap,
  ResultsOf,
  ResultsWith,
  Router,
} from "./node_types.js";

type NodesOf<N extends string> = Exclude<N, typeof START>;
type NodePair<K extends string, Action> = readonly [K, Action, AddNodeOptions?];

/**
 * A graph under construction. `SD` declares its state `S` and what nodes write, `U`. `N` are its nodes, and `Results`
 * what they return. `I`, `O` and `C` declare its input, output and context.
 */
export class StateGraphBuilder<
  SD = unknown,
  S = ExtractStateType<SD>,
  U = ExtractUpdateType<SD, S>,
  N extends string = typeof START,
  I = SD,
  O = SD,
  C = any,
  Results = unknown,
  InterruptType = unknown,
  WriterType = unknown,
> {
  declare readonly Node: NodeFunction<S, NodeResult<U>, ExtractStateType<C>, InterruptType, WriterType>;
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

  /** All edges, those that wait for several nodes among them. */
  get allEdges(): Set<[string, string]> {
    return this.edges;
  }

  addNode<K extends string, In extends StateInput, R extends NodeResult<U> = U>(
    name: K,
    action: NodeAction<StateOf<In>, R, ExtractStateType<C>, InterruptType, WriterType>,
    options: AddNodeOptions<In> & { input: In },
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, R, U>, InterruptType, WriterType>;
  /** A node that gets a Send may read something else than the state. */
  addNode<K extends string, Input = S, R extends NodeResult<U> = U>(
    name: K,
    action: NodeAction<Input, R, ExtractStateType<C>, InterruptType, WriterType>,
    options?: AddNodeOptions,
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, R, U>, InterruptType, WriterType>;
  addNode<K extends string, Input = S, R extends NodeResult<U> = U>(
    nodes: readonly NodePair<K, NodeAction<Input, R, ExtractStateType<C>, InterruptType, WriterType>>[],
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, R, U>, InterruptType, WriterType>;
  addNode<K extends string>(
    nodes: readonly NodePair<
      K,
      NodeAction<S, NodeResult<U>, ExtractStateType<C>, InterruptType, WriterType>
    >[],
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, U, U>, InterruptType, WriterType>;
  addNode<
    Nodes extends Record<
      string,
      NodeAction<S, NodeResult<U>, ExtractStateType<C>, InterruptType, WriterType>
    >,
  >(
    nodes: Nodes,
  ): StateGraphBuilder<
    SD,
    S,
    U,
    N | Extract<keyof Nodes, string>,
    I,
    O,
    C,
    Results & ResultsOf<Nodes, U>,
    InterruptType,
    WriterType
  >;
  addNode(first: unknown, action?: unknown, options?: AddNodeOptions): any {
    for (const [name, target, own] of readNodes(first, action, options)) {
      this.builder.declareNode(name, target, own as BuilderNodeOptions);
    }
    return this;
  }

  /** Adds nodes that run one after the other. */
  addSequence<K extends string, Input = S, R extends NodeResult<U> = U>(
    nodes: readonly NodePair<K, NodeAction<Input, R, ExtractStateType<C>, InterruptType, WriterType>>[],
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, R, U>, InterruptType, WriterType>;
  addSequence<K extends string>(
    nodes: readonly NodePair<
      K,
      NodeAction<S, NodeResult<U>, ExtractStateType<C>, InterruptType, WriterType>
    >[],
  ): StateGraphBuilder<SD, S, U, N | K, I, O, C, ResultsWith<Results, K, U, U>, InterruptType, WriterType>;
  addSequence<
    Nodes extends Record<
      string,
      NodeAction<S, NodeResult<U>, ExtractStateType<C>, InterruptType, WriterType>
    >,
  >(
    nodes: Nodes,
  ): StateGraphBuilder<
    SD,
    S,
    U,
    N | Extract<keyof Nodes, string>,
    I,
    O,
    C,
    Results & ResultsOf<Nodes, U>,
    InterruptType,
    WriterType
  >;
  addSequence(nodes: unknown): any {
    const given = readNodes(nodes);
    if (given.length === 0) throw refuseGraph("a sequence needs at least one node");
    given.forEach(([name, target, own], at) => {
      this.builder.declareNode(name, target, own as BuilderNodeOptions);
      const before = given[at - 1];
      if (before) this.builder.declareEdge(before[0], name);
    });
    return this;
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
  addConditionalEdges(
    source: N | typeof START,
    path: Router<S, ExtractStateType<C>, InterruptType, WriterType>,
    pathMap?: PathMap<NodesOf<N>>,
  ): this;
  addConditionalEdges(branch: {
    source: N | typeof START;
    path: Router<S, ExtractStateType<C>, InterruptType, WriterType>;
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

  /** Throws for the first mistake in the graph, as `compile` does. */
  validate(interrupts: readonly string[] = []): void {
    validateGraph(this.builder, interrupts);
  }

  /** The graph, ready to run. Throws for the first mistake in it. */
  compile(
    options: CompileOptions = {},
  ): CompiledStateGraph<S, U, N, I, O, C, Results, InterruptType, WriterType> {
    return new CompiledStateGraph<S, U, N, I, O, C, Results, InterruptType, WriterType>(
      this.builder,
      options,
    );
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

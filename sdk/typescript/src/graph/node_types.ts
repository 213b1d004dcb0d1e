/** What nodes and conditions of a graph may be. */
import type { CompiledStateGraph } from "../compiled/index.js";
import type { END } from "../constants.js";
import type { RunnableLike } from "../declare/index.js";
import type { ExtractStateType, ExtractUpdateType } from "../state/index.js";
import type {
  CachePolicy,
  Command,
  LangGraphRunnableConfig,
  NodeConfig,
  RetryPolicy,
  Send,
  TimeoutPolicy,
} from "../values/index.js";

export type MaybePromise<T> = T | Promise<T>;
/** What the code of a node may return. */
export type NodeResult<U> =
  | U
  | Command<any, any, any>
  | readonly (Command<any, any, any> | Send | U)[]
  | undefined
  | null
  // biome-ignore lint/suspicious/noConfusingVoidType: a node may return nothing
  | void;

/** The code of a node. `S` is what it reads, `R` what it returns, `C` the context of the graph. */
export type NodeFunction<S, R, C = any, InterruptType = unknown, WriterType = unknown> = (
  state: S,
  config: NodeConfig<C, InterruptType, WriterType>,
) => MaybePromise<R>;
/** What a node may be: a function, a runnable, or a compiled graph. */
export type NodeAction<S, R, C = any, InterruptType = unknown, WriterType = unknown> =
  | NodeFunction<S, R, C, InterruptType, WriterType>
  | RunnableLike<any, any>
  | CompiledStateGraph<any, any, any, any, any, any, any, any, any, any>;

/** What a stream shows of a node that returns `R`. */
type WrittenBy<R, U> = unknown extends R
  ? U
  : R extends object
    ? R extends Command<any, any, any> | readonly unknown[]
      ? U
      : R
    : U;
/** The results of the nodes of a graph, by their names. */
export type ResultsWith<Known, K extends string, R, U> = Known & { [N in K]: WrittenBy<R, U> };
type ResultOf<A, U> = A extends (...args: any[]) => infer R ? WrittenBy<Awaited<R>, U> : U;
export type ResultsOf<Nodes, U> = { [K in keyof Nodes]: ResultOf<Nodes[K], U> };

/** How nodes are run. */
export type NodePolicyOptions = {
  retryPolicy?: RetryPolicy;
  cachePolicy?: CachePolicy | boolean;
  /** Milliseconds that an attempt may take. */
  timeout?: number | TimeoutPolicy;
};

export type AddNodeOptions<NodeInput = any> = NodePolicyOptions & {
  /** Nodes that its commands may lead to. */
  ends?: readonly string[] | Readonly<Record<string, string>>;
  /** Waits until nothing else is left to do. */
  defer?: boolean;
  metadata?: Record<string, unknown>;
  /** What the node reads, when that is not the state. */
  input?: NodeInput;
  /** Graphs that its code calls. */
  subgraphs?: readonly unknown[];
  /** Takes over when the node has failed for good. */
  errorHandler?: (state: any, error: any, config?: any) => unknown;
};
export type StateGraphAddNodeOptions<
  _Nodes extends string = string,
  NodeInput = any,
> = AddNodeOptions<NodeInput>;

type Route = string | Send<any, any>;
/** What decides where a graph goes. */
export type Router<S, C, InterruptType = unknown, WriterType = unknown> =
  | ((state: S, config: NodeConfig<C, InterruptType, WriterType>) => MaybePromise<Route | readonly Route[]>)
  | RunnableLike<any, any>;
export type PathMap<N extends string> =
  | readonly (N | typeof END)[]
  | Readonly<Record<string, N | typeof END>>;

/** The types of a node, each by its name. */
export interface GraphNodeTypes<
  InputSchema = unknown,
  OutputSchema = unknown,
  ContextSchema = unknown,
  Nodes extends string = string,
> {
  InputSchema?: InputSchema;
  OutputSchema?: OutputSchema;
  ContextSchema?: ContextSchema;
  Nodes?: Nodes;
}
/** The types of a condition, each by its name. */
export type ConditionalEdgeRouterTypes<
  InputSchema = unknown,
  ContextSchema = unknown,
  Nodes extends string = string,
> = Omit<GraphNodeTypes<InputSchema, unknown, ContextSchema, Nodes>, "OutputSchema">;

type Field<T, K extends string> = T extends { [N in K]: infer F } ? F : never;
type Either<T, Default> = [T] extends [never] ? Default : T;
type InputIn<T> = Either<ExtractStateType<Field<T, "InputSchema">>, unknown>;
type OutputIn<T> = Either<ExtractUpdateType<Field<T, "OutputSchema">>, Partial<InputIn<T>>>;
type ContextIn<T> = Either<ExtractStateType<Field<T, "ContextSchema">>, Record<string, unknown>>;
type NodesIn<T> = Either<Extract<Field<T, "Nodes">, string>, string>;
type IsBag<T> = 0 extends 1 & T
  ? false
  : T extends { InputSchema: unknown } | { OutputSchema: unknown } | { ContextSchema: unknown }
    ? true
    : false;

export type GraphNodeReturnValue<U, Nodes extends string = string> = MaybePromise<
  U | Command<unknown, U, Nodes>
>;
/** The code of a node, for a schema of the state, or for `GraphNodeTypes`. */
export type GraphNode<Schema, Context = Record<string, any>, Nodes extends string = string> =
  IsBag<Schema> extends true
    ? (
        state: InputIn<Schema>,
        config: LangGraphRunnableConfig<ContextIn<Schema>>,
      ) => GraphNodeReturnValue<OutputIn<Schema>, NodesIn<Schema>>
    : (
        state: ExtractStateType<Schema>,
        config: LangGraphRunnableConfig<Context>,
      ) => GraphNodeReturnValue<ExtractUpdateType<Schema>, Nodes>;

type RouteTo<Nodes extends string> = Nodes | typeof END | Send<Nodes> | (Nodes | typeof END | Send<Nodes>)[];
/** A condition, for a schema of the state, or for `ConditionalEdgeRouterTypes`. */
export type ConditionalEdgeRouter<Schema, Context = Record<string, any>, Nodes extends string = string> =
  IsBag<Schema> extends true
    ? (
        state: InputIn<Schema>,
        config: LangGraphRunnableConfig<ContextIn<Schema>>,
      ) => MaybePromise<RouteTo<NodesIn<Schema>>>
    : (
        state: ExtractStateType<Schema>,
        config: LangGraphRunnableConfig<Context>,
      ) => MaybePromise<RouteTo<Nodes>>;

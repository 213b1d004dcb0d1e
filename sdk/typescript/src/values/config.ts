/** What calls and nodes are configured by. */
import type { InterruptOptions } from "./question.js";
import type { BaseStore } from "./store.js";

/** Where the code of a node runs. */
export type ExecutionInfo = {
  checkpointId: string;
  checkpointNs: string;
  taskId: string;
  threadId: string | undefined;
  runId: string | undefined;
  nodeAttempt: number;
  nodeFirstAttemptTime: number | undefined;
};

export type RunnableConfig<Configurable extends Record<string, any> = Record<string, any>> = {
  configurable?: Configurable;
  tags?: string[];
  metadata?: Record<string, unknown>;
  callbacks?: any;
  recursionLimit?: number;
  maxConcurrency?: number;
  timeout?: number;
  signal?: AbortSignal;
  runName?: string;
  runId?: string;
  store?: BaseStore;
};

/** What a node gets as its second argument. */
export type Runtime<Context = any> = {
  context?: Context;
  store?: BaseStore;
  /** Sends an event in the mode `custom`. */
  writer?: (chunk: unknown) => void;
  /** Puts off the idle timeout of the node. */
  heartbeat?: () => void;
  /** Is aborted when the result of the node is not wanted any more. */
  signal?: AbortSignal;
  executionInfo?: ExecutionInfo;
  interrupt?: <I = unknown, R = any>(value: I, options?: InterruptOptions) => R;
};

export type LangGraphRunnableConfig<Context = any> = RunnableConfig & Runtime<Context>;

/** What a node of a graph gets: `interrupt` and `writer` are typed by the options of the graph. */
export type NodeConfig<Context = any, InterruptType = unknown, WriterType = unknown> = Omit<
  LangGraphRunnableConfig<Context>,
  "interrupt" | "writer" | "signal"
> & {
  interrupt: unknown extends InterruptType
    ? <I = unknown, R = any>(value: I, options?: InterruptOptions) => R
    : InterruptType;
  writer: unknown extends WriterType ? (chunk: unknown) => void : WriterType;
  signal: AbortSignal;
};

/** The task that the current code belongs to. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { BaseStore, LangGraphRunnableConfig } from "../values/index.js";
import type { Place, Replay } from "./replay.js";

/** What a running task needs from the worker that runs it. */
export interface TaskHost {
  /** The server that the task came from. */
  readonly address: string;
  readonly threadId: string;
  readonly taskId: string;
  /** The store of the graph that this process serves, around the one of the task. */
  readonly store: BaseStore | undefined;
  /** Is aborted when the result of the task is not wanted any more. */
  readonly signal: AbortSignal;
  emitEvent(channel: "custom" | "messages", name: string, value: unknown): void;
  reportAlive(): void;
  /** Throws if the task is not this worker's any more. */
  confirmLease(): Promise<void>;
  /** Stores a memo, and returns the value to use. */
  recordMemo(place: Place, value: unknown): Promise<unknown>;
  /** Runs another graph inside of the task. Returns JSON text of its output. */
  callGraph(call: GraphCall): Promise<unknown>;
}

export type GraphCall = {
  graph: string;
  version: string;
  /** JSON text of the input; none goes on with what the graph has left to do. */
  input: string | undefined;
  context: string | undefined;
  persistence: "inherit" | "persist" | "disabled";
  interruptBefore: readonly string[];
  interruptAfter: readonly string[];
  stepLimit: number;
  index: number;
};

/** What functions like `interrupt` know of the node that calls them. */
export type CurrentTask = {
  readonly host: TaskHost;
  readonly replay: Replay;
  /** The config that the node sees. */
  readonly config: LangGraphRunnableConfig;
  readonly input: unknown;
  /** Questions of called graphs that wait. */
  readonly waiting: string[];
  /** Written to the state before what the node returns. */
  readonly pushed: [string, unknown][];
  /** The run keeps its checkpoints, so that it can wait for people. */
  readonly isStored: boolean;
  /** How many graphs the task has called. */
  calls: number;
};

type Frame = { readonly task: CurrentTask; readonly scope: string };

// Copies of this package, such as the ESM and the CommonJS form, share it.
const KEY = Symbol.for("graphd.task");
const shared = globalThis as { [KEY]?: AsyncLocalStorage<Frame> };
shared[KEY] ??= new AsyncLocalStorage<Frame>();
const storage: AsyncLocalStorage<Frame> = shared[KEY];

/** Runs code as the code of a task. */
export function runInTask<T>(task: CurrentTask, code: () => T): T {
  return storage.run({ task, scope: "" }, code);
}

export function currentTask(): CurrentTask | undefined {
  return storage.getStore()?.task;
}

/** The run that the calling code is a part of. */
export function enclosingRunId(): string | undefined {
  return currentTask()?.config.executionInfo?.runId;
}

/** The task of the calling code; throws outside of nodes. */
export function requiredTask(what: string): CurrentTask {
  const task = currentTask();
  if (task === undefined) throw new Error(`${what} works only inside of a node that graphd runs`);
  return task;
}

/** The part of the task that the calling code belongs to. */
export function currentScope(): string {
  return storage.getStore()?.scope ?? "";
}

/**
 * Gives the questions and memos of a function positions of their own. Parts of a node that run side by side,
 * like tool calls, each need a scope, so that every one of them gets its own answers. Scopes nest.
 */
export function scope<T>(name: string, code: () => T): T {
  if (!name) throw new TypeError("a scope needs a name");
  const task = requiredTask("scope()");
  const outer = currentScope();
  return storage.run({ task, scope: outer ? `${outer}/${name}` : name }, code);
}

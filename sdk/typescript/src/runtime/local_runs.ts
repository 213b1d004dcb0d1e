/**
 * What this process knows of the runs that it started itself. Where client and worker are the same process, nodes
 * see the config of the caller as it is, and the caller sees the very error of the node.
 */
import type { BaseStore, LangGraphRunnableConfig } from "../values/index.js";

/** Begins the ids of threads that are deleted after their run. */
export const TEMPORARY = "tmp.";

/** A call of this process that is under way. */
export type LocalRun = {
  readonly config: LangGraphRunnableConfig;
  readonly context: unknown;
  readonly store: BaseStore | undefined;
  /** What nodes have thrown, the latest last. */
  readonly errors: unknown[];
  /** The run that the call begins: empty before it is asked for, undefined where the server alone knows it. */
  runId?: string | undefined;
  /** The call waits for a run that another call has begun. */
  isJoined?: boolean;
};

const runs = new Map<string, LocalRun[]>();

function keyOf(address: string, threadId: string): string {
  return `${address}\n${threadId}`;
}

/** Makes a call known until the returned function is called. */
export function registerCall(address: string, threadId: string, run: LocalRun): () => void {
  const key = keyOf(address, threadId);
  const calls = runs.get(key) ?? [];
  runs.set(key, [...calls, run]);
  return () => {
    const left = (runs.get(key) ?? []).filter((one) => one !== run);
    if (left.length === 0) runs.delete(key);
    else runs.set(key, left);
  };
}

/**
 * The call of this process that began a run. A call that has joined the run is none: the run keeps the config and the
 * context of its own caller.
 */
export function findCall(address: string, threadId: string, runId: string): LocalRun | undefined {
  const calls = (runs.get(keyOf(address, threadId)) ?? []).filter((call) => !call.isJoined);
  return calls.findLast((call) => call.runId === runId) ?? calls.findLast((call) => call.runId === undefined);
}

/** Lets the calls of this process on a thread throw the very error of a node. */
export function noteThrown(address: string, threadId: string, error: unknown): void {
  for (const call of runs.get(keyOf(address, threadId)) ?? []) call.errors.push(error);
}

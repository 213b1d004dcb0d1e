/** The configs of calls: defaults of a graph, and what a call says. */
import { InvalidArgumentError } from "../errors/index.js";
import type { RunControl } from "../runtime/index.js";
import type { BaseStore, RunnableConfig } from "../values/index.js";
import type { StreamMode } from "./stream_types.js";

export type InvokeOptions<C = any> = RunnableConfig & {
  /** Values for the run only; nodes see them as `config.context`. */
  context?: C;
  interruptBefore?: readonly string[] | "*";
  interruptAfter?: readonly string[] | "*";
  outputKeys?: string | readonly string[];
  streamMode?: StreamMode | readonly StreamMode[];
  durability?: "async" | "sync" | "exit";
  /** Lets the program ask the run to stop between two supersteps. */
  control?: RunControl;
  store?: BaseStore;
};

export type StreamOptions<M, Sub, E, C = any> = Omit<InvokeOptions<C>, "streamMode"> & {
  streamMode?: M;
  /** Shows what happens in subgraphs, too: chunks then begin with their namespace. */
  subgraphs?: Sub;
  encoding?: E;
};

/** One config of several: later ones win, and the parts of objects are joined. */
export function mergeConfigs(...configs: (RunnableConfig | undefined)[]): InvokeOptions {
  const merged: Record<string, any> = {};
  for (const config of configs) {
    for (const [key, value] of Object.entries(config ?? {})) {
      if (value === undefined) continue;
      if (key === "configurable" || key === "metadata") merged[key] = { ...merged[key], ...value };
      else if (key === "tags") merged[key] = [...new Set([...(merged[key] ?? []), ...value])];
      else merged[key] = value;
    }
  }
  return merged;
}

/** A config whose `timeout` is a part of its `signal`: the call is aborted when either says so. */
export function timeCall(config: InvokeOptions): InvokeOptions {
  const { timeout, signal, ...rest } = config;
  if (timeout === undefined) return config;
  if (!(timeout > 0)) {
    const problem = `timeout must be a number of milliseconds above 0, not ${String(timeout)}`;
    throw new InvalidArgumentError(problem, { violations: { timeout: problem } });
  }
  const ended = AbortSignal.timeout(timeout);
  return { ...rest, signal: signal ? AbortSignal.any([signal, ended]) : ended };
}

export function checkRecursionLimit(limit: number | undefined): void {
  if (limit === undefined || (typeof limit === "number" && limit >= 1)) return;
  const problem = `recursionLimit must be a number of at least 1, not ${String(limit)}`;
  throw new InvalidArgumentError(problem, { violations: { recursionLimit: problem } });
}

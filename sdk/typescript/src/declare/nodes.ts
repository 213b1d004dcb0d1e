/** What a graph under construction consists of. */
import { InvalidGraphError } from "../errors/index.js";
import type { DeclaredState } from "../state/index.js";
import { type CachePolicy, type RetryPolicy, readTimeout, type TimeoutPolicy } from "../values/index.js";
import type { Action } from "./actions.js";
import type { CompiledGraph } from "./compiled_graph.js";

/** How a node is run; what is left out falls back to the defaults of the graph. */
export type Policies = {
  retry?: RetryPolicy | undefined;
  cache?: CachePolicy | undefined;
  timeout?: TimeoutPolicy | undefined;
  errorHandler?: unknown;
};

export type PolicyOptions = {
  retryPolicy?: RetryPolicy;
  cachePolicy?: CachePolicy | boolean;
  timeout?: number | TimeoutPolicy;
  errorHandler?: unknown;
};

export function readPolicies(options: PolicyOptions): Policies {
  const { retryPolicy: retry, cachePolicy: cache, timeout, errorHandler } = options;
  return {
    retry,
    cache: cache === true ? {} : cache || undefined,
    timeout: readTimeout(timeout),
    errorHandler,
  };
}

export function completePolicies(own: Policies, defaults: Policies): Policies {
  return {
    retry: own.retry ?? defaults.retry,
    cache: own.cache ?? defaults.cache,
    timeout: own.timeout ?? defaults.timeout,
    errorHandler: own.errorHandler ?? defaults.errorHandler,
  };
}

export type NodeDeclaration = {
  readonly name: string;
  /** Its code; none of a node that is a graph. */
  readonly action: Action | undefined;
  readonly subgraph: CompiledGraph | undefined;
  /** Graphs that its code calls, as far as it says. */
  readonly called: readonly CompiledGraph[];
  /** The keys that it reads. */
  readonly state: DeclaredState;
  readonly policies: Policies;
  readonly deferred: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Where its commands may lead. */
  readonly destinations: readonly string[];
  /** The node whose failures it handles; empty for other nodes. */
  readonly handles: string;
};

export type BranchDeclaration = {
  readonly source: string;
  readonly name: string;
  readonly action: Action;
  /** Where its results lead; none when they are names of nodes. */
  readonly paths: Readonly<Record<string, string>> | undefined;
};

export type EdgeDeclaration = { readonly sources: readonly string[]; readonly target: string };

export function refuseGraph(message: string): InvalidGraphError {
  return new InvalidGraphError(message, { reason: "INVALID_GRAPH" });
}

/** Errors under the names that LangGraph.js programs catch. */
import { type BaseErrorFields, BaseLangGraphError, hasErrorName } from "./base.js";
import { GraphdError } from "./graphd_error.js";

/** The run took more supersteps than its recursion limit allows. */
export class GraphRecursionError extends BaseLangGraphError {
  constructor(message?: string, fields: BaseErrorFields = {}) {
    super(message, { lc_error_code: "GRAPH_RECURSION_LIMIT", ...fields });
  }

  static override get unminifiable_name(): string {
    return "GraphRecursionError";
  }
}

/** A graph is used in a way that it was not declared for. */
export class GraphValueError extends BaseLangGraphError {
  static override get unminifiable_name(): string {
    return "GraphValueError";
  }
}

/** The state can't take what was written to it. */
export class InvalidUpdateError extends GraphdError {
  static override get unminifiable_name(): string {
    return "InvalidUpdateError";
  }
}

/** There is nothing to run: no input, and nothing left to do. */
export class EmptyInputError extends GraphdError {
  static override get unminifiable_name(): string {
    return "EmptyInputError";
  }
}

/** A key of the state was read before anything was written to it. */
export class EmptyChannelError extends BaseLangGraphError {
  static override get unminifiable_name(): string {
    return "EmptyChannelError";
  }
}

/** Nothing leads to a node. */
export class UnreachableNodeError extends BaseLangGraphError {
  constructor(message?: string, fields: BaseErrorFields = {}) {
    super(message, { lc_error_code: "UNREACHABLE_NODE", ...fields });
  }

  static override get unminifiable_name(): string {
    return "UnreachableNodeError";
  }
}

/** A node calls several subgraphs that keep states of their own. */
export class MultipleSubgraphsError extends BaseLangGraphError {
  constructor(message?: string, fields: BaseErrorFields = {}) {
    super(message, { lc_error_code: "MULTIPLE_SUBGRAPHS", ...fields });
  }

  static override get unminifiable_name(): string {
    return "MultipleSubgraphsError";
  }
}

/** On its replay the node did not do what its journal says it did. */
export class NonDeterministicNode extends BaseLangGraphError {
  static override get unminifiable_name(): string {
    return "NonDeterministicNode";
  }
}

/** The question of this node was declined. */
export class InterruptDismissed extends BaseLangGraphError {
  constructor(readonly reason = "") {
    super(reason || "the question was dismissed");
  }

  static override get unminifiable_name(): string {
    return "InterruptDismissed";
  }
}

/** The question of this node had no answer in time. */
export class InterruptExpired extends BaseLangGraphError {
  static override get unminifiable_name(): string {
    return "InterruptExpired";
  }
}

export type NodeTimeoutFields = {
  node: string;
  kind: "run" | "idle";
  timeout: number;
  elapsed: number;
  runTimeout?: number;
  idleTimeout?: number;
};

/** A node took longer than its timeout allows. Times are in milliseconds. */
export class NodeTimeoutError extends BaseLangGraphError {
  readonly node: string;
  readonly kind: "run" | "idle";
  readonly timeout: number;
  readonly elapsed: number;
  readonly runTimeout: number | undefined;
  readonly idleTimeout: number | undefined;

  constructor(fields: NodeTimeoutFields) {
    const { node, kind, timeout, elapsed } = fields;
    super(`Node "${node}" exceeded its ${kind} timeout of ${timeout} ms (elapsed: ${elapsed} ms).`);
    this.node = node;
    this.kind = kind;
    this.timeout = timeout;
    this.elapsed = elapsed;
    this.runTimeout = fields.runTimeout;
    this.idleTimeout = fields.idleTimeout;
  }

  static override get unminifiable_name(): string {
    return "NodeTimeoutError";
  }
}

/** What an error handler is told: which node failed, and how. */
export class NodeError extends BaseLangGraphError {
  constructor(
    readonly node: string,
    readonly error: unknown,
  ) {
    super(`Node "${node}" failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }

  static override get unminifiable_name(): string {
    return "NodeError";
  }
}

export type RemoteNodeErrorFields = { type?: string; node?: string; reason?: string; stack?: string };

/** A node failed in another process; `type` names the class of its error, `remoteStack` where it was thrown. */
export class RemoteNodeError extends BaseLangGraphError {
  readonly type: string;
  readonly node: string;
  readonly reason: string;
  readonly remoteStack: string;

  constructor(message: string, fields: RemoteNodeErrorFields = {}) {
    super(message);
    this.type = fields.type ?? "";
    this.node = fields.node ?? "";
    this.reason = fields.reason ?? "";
    this.remoteStack = fields.stack ?? "";
  }

  static override get unminifiable_name(): string {
    return "RemoteNodeError";
  }
}

export function isNodeError(value: unknown): value is NodeError {
  return hasErrorName(value, "NodeError");
}

export function isNodeTimeoutError(value: unknown): value is NodeTimeoutError {
  return hasErrorName(value, "NodeTimeoutError");
}

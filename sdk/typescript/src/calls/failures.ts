/** The errors of failed runs and tasks, as the server tells of them. */
import type { Failure } from "../_gen/graphd/v1/payload_pb.js";
import { type Run, RunState } from "../_gen/graphd/v1/run_pb.js";
import { START } from "../constants.js";
import {
  GraphdError,
  GraphRecursionError,
  InvalidUpdateError,
  LimitExceededError,
  NodeTimeoutError,
  NonDeterministicNode,
  RemoteNodeError,
} from "../errors/index.js";
import { publicName } from "../names/index.js";

/** A run failed for a reason that has no error of its own. */
export class RunFailedError extends GraphdError {
  static override get unminifiable_name(): string {
    return "RunFailedError";
  }
}

/** Finds the very error that was thrown in this process for a failure, if it was. */
export type FindThrown = (failure: Failure) => unknown;

/** What a stopped run throws in its caller; `undefined` when it throws nothing. */
export function errorOfRun(run: Run, findThrown?: FindThrown): unknown {
  switch (run.state) {
    case RunState.CANCELLED:
      return createAbortError(run.failure?.message || "the run was cancelled");
    case RunState.SUPERSEDED:
      return new RunFailedError("the run was replaced by a later input", { reason: "SUPERSEDED" });
    case RunState.FAILED:
    case RunState.TIMED_OUT:
      if (run.failure === undefined) return new RunFailedError("the run has failed");
      return findThrown?.(run.failure) ?? errorOfFailure(run.failure, run.threadId);
    default:
      return undefined;
  }
}

/** The error of a failure. */
export function errorOfFailure(failure: Failure, thread = ""): Error {
  const { reason, message, details } = failure;
  switch (reason) {
    case "STEP_LIMIT_EXCEEDED":
      return new GraphRecursionError(describeStepLimit(failure));
    case "INVALID_NODE_UPDATE":
      return new InvalidUpdateError(describeWriters(failure) + message, {
        reason,
        lc_error_code: codeOfUpdate(failure),
      });
    case "UNKNOWN_TARGET_NODE":
      return new InvalidUpdateError(message, { reason });
    case "NODE_TIMEOUT":
      return timeoutError(failure);
    case "STEP_TIMEOUT":
    case "RUN_TIMEOUT":
      return Object.assign(new Error(message), { name: "TimeoutError" });
    case "NON_DETERMINISTIC_NODE":
      return new NonDeterministicNode(describePlace(failure, thread) + message);
    case "NODE_FAILED":
      return restoreError(failure);
    case "LIMIT_EXCEEDED":
    case "OUTPUT_TOO_LARGE":
      return new LimitExceededError(describeWriters(failure) + message, { reason, metadata: details });
    default:
      return new RunFailedError(message, { reason, metadata: details });
  }
}

const CUT_OFF = new Set(["CANCELLED_BY_CLIENT", "SIBLING_FAILED", "STEP_TIMEOUT"]);

/** The error of a task in a snapshot; a command for a parent is none. */
export function storedError(failure: Failure | undefined): { name: string; message: string } | undefined {
  if (failure === undefined || failure.type === "ParentCommand") return undefined;
  if (CUT_OFF.has(failure.reason)) return { name: "AbortError", message: failure.message };
  const error = errorOfFailure(failure);
  return { name: failure.type || error.name, message: error.message };
}

export function createAbortError(message: string): Error {
  return Object.assign(new Error(message), { name: "AbortError" });
}

const BUILT_IN: Record<string, new (message: string) => Error> = {
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

/** The error of a node that ran elsewhere: a built-in one as itself, others as `RemoteNodeError`. */
function restoreError(failure: Failure): Error {
  const { message, type, reason, stack } = failure;
  const node = publicName(failure.node);
  const kind = Object.hasOwn(BUILT_IN, type) ? BUILT_IN[type] : undefined;
  if (kind === undefined) return new RemoteNodeError(message, { type, node, reason, stack });
  return Object.assign(new kind(message), { node, remoteStack: stack });
}

function describeStepLimit({ details, message }: Failure): string {
  const { limit } = details;
  if (limit === undefined) return message;
  return (
    `Recursion limit of ${limit} reached without hitting a stop condition. ` +
    'You can increase the limit by setting the "recursionLimit" config key.'
  );
}

function codeOfUpdate({ message, type }: Failure): string | undefined {
  if (type === "InvalidResult") return "INVALID_GRAPH_NODE_RETURN_VALUE";
  return message.includes("in one superstep") ? "INVALID_CONCURRENT_GRAPH_UPDATE" : undefined;
}

function describePlace(failure: Failure, thread: string): string {
  if (failure.node === "") return "";
  return `node "${publicName(failure.node)}"${thread === "" ? "" : ` of thread "${thread}"`}: `;
}

/** Names whose value was refused, as far as it is known: the nodes of one superstep, or the input. */
function describeWriters({ node }: Failure): string {
  if (node === START) return "the input: ";
  const names = node
    .split(", ")
    .filter(Boolean)
    .map((name) => `"${publicName(name)}"`);
  return names.length === 0 ? "" : `node${names.length > 1 ? "s" : ""} ${names.join(", ")}: `;
}

function timeoutError(failure: Failure): NodeTimeoutError {
  const timeout = readDuration(failure.details.timeout ?? "");
  const isIdle = failure.message.includes("idle");
  return new NodeTimeoutError({
    node: publicName(failure.node),
    kind: isIdle ? "idle" : "run",
    timeout,
    elapsed: timeout,
    ...(isIdle ? { idleTimeout: timeout } : { runTimeout: timeout }),
  });
}

const UNITS: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, µs: 1e-3, ns: 1e-6 };

/** Milliseconds of a duration as the server writes it, such as 1m0.5s or 50ms. */
export function readDuration(text: string): number {
  return [...text.matchAll(/([0-9.]+)(h|ms|m|µs|ns|s)/g)].reduce(
    (sum, [, number, unit]) => sum + Number(number) * (UNITS[unit ?? ""] ?? 0),
    0,
  );
}

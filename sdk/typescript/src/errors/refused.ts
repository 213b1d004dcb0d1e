/** Calls that graphd refused, by what the caller has to do. */
import { hasErrorName } from "./base.js";
import { GraphdError, type GraphdErrorFields } from "./graphd_error.js";

/** graphd found the graph invalid; `violations` lists every problem. */
export class InvalidGraphError extends GraphdError {
  static override get unminifiable_name(): string {
    return "InvalidGraphError";
  }
}

/** An argument is wrong, and nothing was sent; `violations` names it. */
export class InvalidArgumentError extends GraphdError {
  static override get unminifiable_name(): string {
    return "InvalidArgumentError";
  }
}

/** How calls are to be protected is wrong, and nothing was sent; `option` is the part that is wrong. */
export class InvalidSecurityError extends GraphdError {
  constructor(
    readonly option: string,
    readonly problem: string,
    readonly want: string,
  ) {
    super(`${problem}: ${want}`, { violations: { [option]: problem } });
  }

  static override get unminifiable_name(): string {
    return "InvalidSecurityError";
  }
}

/** The server does not accept the credentials of the caller, or there are none to send. */
export class UnauthenticatedError extends GraphdError {
  static override get unminifiable_name(): string {
    return "UnauthenticatedError";
  }
}

/** The caller may not do this. */
export class AccessDeniedError extends GraphdError {
  static override get unminifiable_name(): string {
    return "AccessDeniedError";
  }
}

/** Another run of the thread is active. */
export class ThreadBusyError extends GraphdError {
  static override get unminifiable_name(): string {
    return "ThreadBusyError";
  }
}

/** There is no such thread, run, checkpoint or graph, or the caller may not see it. */
export class NotFoundError extends GraphdError {
  static override get unminifiable_name(): string {
    return "NotFoundError";
  }
}

/** There is a thread, run or graph of this name, with other content; of a thread, `metadata.graph` is its graph. */
export class AlreadyExistsError extends GraphdError {
  static override get unminifiable_name(): string {
    return "AlreadyExistsError";
  }
}

/** What was to be changed has changed since it was read: read it again, and decide again. */
export class ConflictError extends GraphdError {
  static override get unminifiable_name(): string {
    return "ConflictError";
  }
}

/** A call names another version of the graph than the one that its thread is on. Nothing was changed. */
export class GraphVersionError extends GraphdError {
  static override get unminifiable_name(): string {
    return "GraphVersionError";
  }

  /** The version that the thread is on. */
  get threadVersion(): string {
    return this.metadata.threadVersion ?? "";
  }

  /** The version that the call names. */
  get namedVersion(): string {
    return this.metadata.version ?? "";
  }
}

/** The thread waits for answers; `questionIds` names the open questions. */
export class OpenQuestionsError extends GraphdError {
  static override get unminifiable_name(): string {
    return "OpenQuestionsError";
  }

  get questionIds(): string[] {
    return splitIds(this.metadata.openInterruptIds);
  }
}

/** What was asked for, or what a node made, is beyond a limit of the server. */
export class LimitExceededError extends GraphdError {
  static override get unminifiable_name(): string {
    return "LimitExceededError";
  }

  /** The option of the server that sets the limit; empty when none does. */
  get limit(): string {
    return this.metadata.limit ?? "";
  }

  /** The value of the limit. */
  get most(): number | undefined {
    return parseNumber(this.metadata.most);
  }

  /** What was asked for, or at least so much. */
  get need(): number | undefined {
    return parseNumber(this.metadata.need);
  }
}

export type ResumeRefusal = "not_pending" | "empty_map" | "ambiguous";

const RESUME_REFUSALS: readonly string[] = ["not_pending", "empty_map", "ambiguous"];

export type UnknownInterruptFields = GraphdErrorFields & {
  interruptIds?: readonly string[];
  pendingIds?: readonly string[];
};

/**
 * An answer does not fit the questions that are open. Nothing of the call is stored.
 *
 * `reason` is `not_pending` when the call names questions that are not open, or when nothing is open, and
 * `ambiguous` when it names none while several are open. `serverReason` tells apart what `not_pending`
 * stands for.
 */
export class UnknownInterruptError extends GraphdError {
  /** The questions that the answer named. */
  readonly interruptIds: readonly string[];
  /** The questions that are open, ten at most. */
  readonly pendingIds: readonly string[];

  constructor(message?: string, fields: UnknownInterruptFields = {}) {
    super(message, fields);
    if (!RESUME_REFUSALS.includes(this.reason)) {
      this.reason = this.reason === "RESPONSE_AMBIGUOUS" ? "ambiguous" : "not_pending";
    }
    this.interruptIds = fields.interruptIds ?? splitIds(this.metadata.interruptId);
    this.pendingIds = fields.pendingIds ?? splitIds(this.metadata.openInterruptIds);
  }

  static override get unminifiable_name(): string {
    return "UnknownInterruptError";
  }
}

/** There is no such question in the thread, or the caller may not see it. */
export class InterruptNotFoundError extends UnknownInterruptError {
  static override get unminifiable_name(): string {
    return "InterruptNotFoundError";
  }
}

/** An answer was given, but nothing waits for one. */
export class NothingToResumeError extends UnknownInterruptError {
  static override get unminifiable_name(): string {
    return "NothingToResumeError";
  }
}

/** One answer was given, but several questions wait: answer by id. */
export class AmbiguousResumeError extends UnknownInterruptError {
  static override get unminifiable_name(): string {
    return "AmbiguousResumeError";
  }
}

const UNKNOWN_INTERRUPT = [
  "UnknownInterruptError",
  "InterruptNotFoundError",
  "NothingToResumeError",
  "AmbiguousResumeError",
];

export function isUnknownInterruptError(value: unknown): value is UnknownInterruptError {
  return hasErrorName(value, ...UNKNOWN_INTERRUPT);
}

/** An answer is not what the schema of its question wants. The question stays open. */
export class InvalidResumeError extends GraphdError {
  static override get unminifiable_name(): string {
    return "InvalidResumeError";
  }
}

function splitIds(text: string | undefined): string[] {
  return text ? text.split(",").filter(Boolean).sort() : [];
}

function parseNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

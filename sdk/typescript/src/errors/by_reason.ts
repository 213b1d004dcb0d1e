import { EmptyInputError, InvalidUpdateError } from "./graph_errors.js";
import { GraphdError, type GraphdErrorFields } from "./graphd_error.js";
import {
  AccessDeniedError,
  AlreadyExistsError,
  AmbiguousResumeError,
  ConflictError,
  InterruptNotFoundError,
  InvalidGraphError,
  InvalidResumeError,
  LimitExceededError,
  NotFoundError,
  NothingToResumeError,
  OpenQuestionsError,
  ThreadBusyError,
  UnauthenticatedError,
  UnknownInterruptError,
} from "./refused.js";
import {
  CallTimeoutError,
  OutcomeUnknownError,
  ServerBusyError,
  ServerUnavailableError,
  StoreFullError,
  StoreReplacedError,
} from "./unavailable.js";

type ErrorClass = new (message?: string, fields?: GraphdErrorFields) => GraphdError;

const REASONS = new Map<ErrorClass, string>([
  [InvalidGraphError, "INVALID_GRAPH"],
  [ThreadBusyError, "THREAD_BUSY"],
  [NothingToResumeError, "THREAD_NOT_INTERRUPTED INTERRUPT_ALREADY_RESOLVED"],
  [AmbiguousResumeError, "RESPONSE_AMBIGUOUS"],
  [UnknownInterruptError, "INTERRUPT_EXPIRED"],
  [InterruptNotFoundError, "INTERRUPT_NOT_FOUND"],
  [InvalidResumeError, "RESPONSE_SCHEMA_MISMATCH"],
  [EmptyInputError, "NOTHING_TO_DO"],
  [InvalidUpdateError, "AMBIGUOUS_NODE NODE_NOT_FOUND"],
  [
    LimitExceededError,
    "PAYLOAD_TOO_LARGE SCHEMA_LIMIT_EXCEEDED CHANGE_TOO_LARGE TOO_MANY_GRAPHS TOO_MANY_ASSISTANTS TOO_MANY_ITEMS TOO_MANY_CRONS ITEM_SEARCH_TOO_BROAD",
  ],
  [
    ServerBusyError,
    "TOO_MANY_RUNS TOO_MANY_SUBSCRIBERS TOO_MANY_REQUESTS THREAD_QUEUE_FULL RATE_LIMITED QUOTA_EXCEEDED SLOW_CONSUMER",
  ],
  [
    UnauthenticatedError,
    "NO_CREDENTIALS CERTIFICATE_UNMAPPED TOKEN_INVALID TOKEN_EXPIRED TOKEN_NOT_YET_VALID TOKEN_AUDIENCE TOKEN_ISSUER " +
      "TOKEN_ALGORITHM TOKEN_SIGNATURE TOKEN_MALFORMED TOKEN_TOO_LARGE TOKEN_REVOKED TOKEN_CLAIM TOKEN_UNKNOWN " +
      "SESSION_EXPIRED SESSION_INVALID PROXY_UNTRUSTED PROXY_HEADER_INVALID",
  ],
  [AccessDeniedError, "ACCESS_DENIED ORIGIN_REFUSED"],
  [StoreFullError, "STORE_FULL"],
  [StoreReplacedError, "STORE_REPLACED"],
  [OutcomeUnknownError, "OUTCOME_UNKNOWN"],
  [
    NotFoundError,
    "THREAD_NOT_FOUND RUN_NOT_FOUND GRAPH_NOT_FOUND CHECKPOINT_NOT_FOUND ASSISTANT_NOT_FOUND ITEM_NOT_FOUND CRON_NOT_FOUND",
  ],
  [AlreadyExistsError, "THREAD_EXISTS RUN_EXISTS GRAPH_EXISTS ASSISTANT_EXISTS CRON_EXISTS"],
  [ConflictError, "ETAG_MISMATCH CHECKPOINT_CONFLICT QUESTION_CHANGED COUNT_CHANGED"],
  [OpenQuestionsError, "THREAD_INTERRUPTED"],
  [CallTimeoutError, "WAIT_TIMEOUT DEADLINE_EXCEEDED"],
  [
    ServerUnavailableError,
    "STORE_UNAVAILABLE STORE_BUSY SERVER_DRAINING NO_WORKER_AVAILABLE WORKER_SILENT KEYS_UNAVAILABLE",
  ],
  // A caller who wants to tell these apart branches on the reason.
  [
    GraphdError,
    "INVALID_FIELD INVALID_PAYLOAD_JSON INPUT_SCHEMA_MISMATCH INVALID_PAGE_TOKEN INVALID_CURSOR REQUEST_ID_CONFLICT " +
      "RESPONSES_INCOMPLETE INTERRUPT_CLAIMED RESPONSE_IN_EFFECT TRAIL_FULL LINKS_NOT_CONFIGURED RUN_NOT_CANCELLABLE " +
      "GRAPH_VERSION_UNAVAILABLE GRAPH_IN_USE TASK_LEASE_LOST PROTOCOL_MISMATCH WORKER_ID_TAKEN WORKER_REPLACED " +
      "CURSOR_TRIMMED CURSOR_AHEAD CURSOR_LOST FEATURE_DISABLED METHOD_NOT_FOUND CANCELLED CHECKPOINT_CORRUPT INTERNAL",
  ],
]);

const BY_REASON = new Map<string, ErrorClass>(
  [...REASONS].flatMap(([kind, reasons]) =>
    reasons.split(" ").map((reason): [string, ErrorClass] => [reason, kind]),
  ),
);

/** The classes of other reasons, and of none. */
const BY_CODE = new Map<string, ErrorClass>([
  ["UNAVAILABLE", ServerUnavailableError],
  ["UNAUTHENTICATED", UnauthenticatedError],
  ["PERMISSION_DENIED", AccessDeniedError],
  ["DEADLINE_EXCEEDED", CallTimeoutError],
]);

/** The class of a reason of the server's table, `undefined` for one that is not in it. */
export function errorClassOf(reason: string): ErrorClass | undefined {
  return BY_REASON.get(reason);
}

/** All reasons that have a class. */
export function knownReasons(): string[] {
  return [...BY_REASON.keys()];
}

/** The error of a call that was refused with a reason, or with a code of gRPC alone. */
export function createGraphdError(message: string, fields: GraphdErrorFields): GraphdError {
  const known = BY_REASON.get(fields.reason ?? "") ?? BY_CODE.get(fields.code ?? "") ?? GraphdError;
  const kind = isOfOtherGraph(fields) ? AlreadyExistsError : known;
  return new kind(message, fields);
}

/** Whether a call names a thread that belongs to another graph. The server has no reason of its own for it. */
function isOfOtherGraph({ reason, metadata, violations }: GraphdErrorFields): boolean {
  return (
    reason === "INVALID_FIELD" && metadata?.graph !== undefined && violations?.["run.graph"] !== undefined
  );
}

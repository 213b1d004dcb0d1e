/** How nodes are run. Times are in milliseconds, but for the `ttl` of caches, which is in seconds. */

/** When a failed attempt is repeated. */
export type RetryPolicy = {
  /** Attempts, the first included: 3. */
  maxAttempts?: number;
  /** Wait before the second attempt: 500. */
  initialInterval?: number;
  /** Factor by which the wait grows: 2. */
  backoffFactor?: number;
  /** Longest wait: 128000. */
  maxInterval?: number;
  /** Add up to a second of random wait: true. */
  jitter?: boolean;
  /** Whether an error is worth another attempt. */
  retryOn?: (error: any) => boolean;
  logWarning?: boolean;
};

/** How long the result of a node counts for the same input. */
export type CachePolicy = {
  /** Seconds; for ever if it is left out. */
  ttl?: number;
  /** Text that stands for an input. */
  keyFunc?: (args: unknown[]) => string;
};

export type TimeoutPolicy = {
  /** How long an attempt may take. */
  runTimeout?: number;
  /** How long it may go without a sign of life. */
  idleTimeout?: number;
};

/** A timeout as options take it. */
export function readTimeout(given: number | TimeoutPolicy | undefined): TimeoutPolicy | undefined {
  const policy = typeof given === "number" ? { runTimeout: given } : given;
  for (const [name, limit] of Object.entries(policy ?? {})) {
    if (limit !== undefined && !(typeof limit === "number" && limit > 0)) {
      throw new RangeError(`${name} must be a number of milliseconds above 0, not ${String(limit)}`);
    }
  }
  return policy;
}

const REFUSED_STATUS = [400, 401, 402, 403, 404, 405, 406, 407, 409];

type RequestError = {
  name?: string;
  code?: string;
  status?: unknown;
  message?: unknown;
  response?: { status?: unknown };
  error?: { code?: unknown };
};

/** What is repeated without a `retryOn`: all but what another attempt can't mend. */
export function isWorthRetrying(thrown: unknown): boolean {
  const error = (thrown ?? {}) as RequestError;
  if (error.name === "AbortError" || error.name === "GraphValueError") return false;
  if (typeof error.message === "string" && /^(Cancel|AbortError)/.test(error.message)) return false;
  if (error.code === "ECONNABORTED" || error.error?.code === "insufficient_quota") return false;
  const status = Number(error.response?.status ?? error.status);
  return !REFUSED_STATUS.includes(status);
}

import { type GraphdError, hasErrorName } from "../errors/index.js";

/** Milliseconds that a server may stay away, and those before it has answered at all. */
const LIMIT = 30_000;
export const UNOPENED = 5_000;
const FIRST = 50;
const LONGEST = 2_000;

/** What passes by itself: the call is made again, with the same request id. */
const RETRYABLE = new Set([
  "SERVER_DRAINING",
  "SLOW_CONSUMER",
  "STORE_UNAVAILABLE",
  "STORE_BUSY",
  "OUTCOME_UNKNOWN",
  "TOO_MANY_RUNS",
  "TOO_MANY_SUBSCRIBERS",
  "TOO_MANY_REQUESTS",
  "KEYS_UNAVAILABLE",
]);

/** Whether another server, or the same one later, may answer what can be repeated. */
export function isTransient(problem: GraphdError): boolean {
  if (hasErrorName(problem, "TLSError")) return false;
  return (
    RETRYABLE.has(problem.serverReason) || (problem.code === "UNAVAILABLE" && problem.serverReason === "")
  );
}

/** Spaces attempts, and ends them when none has helped for a while. */
export class Backoff {
  private pause = FIRST;
  private since: number | undefined;

  /** Something came: the next problem is a new one. */
  reset(): void {
    this.pause = FIRST;
    this.since = undefined;
  }

  /** Milliseconds to wait before the next attempt. Throws the problem when there have been enough. */
  nextPause(problem: GraphdError, limit = LIMIT): number {
    const now = Date.now();
    this.since ??= now;
    let pause = this.pause;
    this.pause = Math.min(2 * this.pause, LONGEST);
    if (problem.code === "RESOURCE_EXHAUSTED") {
      // This server is busy; of others one may answer at once.
      pause = Math.min(Math.max(pause, problem.retryDelay ?? 0), LONGEST);
    }
    const left = this.since + limit - now;
    if (left <= 0) throw problem;
    return Math.min(pause, left); // the last attempt is at the limit
  }
}

/** Waits. Throws the reason of the signal when that is aborted first. */
export async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

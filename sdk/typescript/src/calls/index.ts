export { Backoff, isTransient, sleep, UNOPENED } from "./backoff.js";
export type { Caller, CallOptions, Duplex, DuplexCaller, DuplexListener } from "./caller.js";
export { Deadline } from "./deadline.js";
export {
  createAbortError,
  errorOfFailure,
  errorOfRun,
  type FindThrown,
  RunFailedError,
  storedError,
} from "./failures.js";
export { callOnce, callRepeatedly, pauseAfter } from "./repeated.js";
export { createId } from "./request_id.js";
export { createCallError, readStatusDetails, type StatusDetail } from "./status.js";
export { emitWarning } from "./warning.js";

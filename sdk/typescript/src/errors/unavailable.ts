/** Calls that failed because of the server, its store, or the network between. */
import { GraphdError } from "./graphd_error.js";

/** The server or its store can't be reached, or there is no worker for the node. */
export class ServerUnavailableError extends GraphdError {
  static override get unminifiable_name(): string {
    return "ServerUnavailableError";
  }
}

/** Client and server do not agree on how to protect the connection. */
export class TLSError extends ServerUnavailableError {
  static override get unminifiable_name(): string {
    return "TLSError";
  }
}

/** A change was made, or it was not. The same call with the same request id finds out. */
export class OutcomeUnknownError extends ServerUnavailableError {
  static override get unminifiable_name(): string {
    return "OutcomeUnknownError";
  }
}

/** A call had no answer in its time. What it asked for may be done all the same, and a run goes on. */
export class CallTimeoutError extends GraphdError {
  static override get unminifiable_name(): string {
    return "CallTimeoutError";
  }
}

/** The server has as much to do as it may: try again after `retryDelay` milliseconds. */
export class ServerBusyError extends GraphdError {
  static override get unminifiable_name(): string {
    return "ServerBusyError";
  }
}

/** The store has no space left. Nothing was changed; threads can be read and deleted. */
export class StoreFullError extends GraphdError {
  static override get unminifiable_name(): string {
    return "StoreFullError";
  }
}

/** The store is not the one that the server opened; an operator has to act. */
export class StoreReplacedError extends GraphdError {
  static override get unminifiable_name(): string {
    return "StoreReplacedError";
  }
}

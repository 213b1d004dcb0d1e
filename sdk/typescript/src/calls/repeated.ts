import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type GraphdError, isGraphdError } from "../errors/index.js";
import { Backoff, isTransient, sleep, UNOPENED } from "./backoff.js";
import type { Caller, CallOptions } from "./caller.js";

export type RepeatOptions = CallOptions & {
  /** The server has answered before: it may stay away for longer. */
  served?: boolean;
};

/**
 * Makes a call again while the server is away or busy: one that changes nothing, or has a request id,
 * with which it is done once.
 */
export async function callRepeatedly<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: RepeatOptions = {},
): Promise<MessageShape<O>> {
  const backoff = new Backoff();
  for (;;) {
    try {
      return await caller.unary(method, request, options);
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      await sleep(pauseAfter(error, backoff, options), options.signal);
    }
  }
}

/** Makes a call once, within its time. */
export async function callOnce<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  try {
    return await caller.unary(method, request, options);
  } catch (error) {
    if (isGraphdError(error)) options.deadline?.checkProblem(error);
    throw error;
  }
}

/** Milliseconds to wait before the next attempt. Throws the problem when there is none. */
export function pauseAfter(problem: GraphdError, backoff: Backoff, options: RepeatOptions): number {
  options.deadline?.checkProblem(problem);
  if (!isTransient(problem)) throw problem;
  // Without a reason no server has answered: it may not be there at all.
  const isAway = problem.serverReason === "" && options.served !== true;
  const pause = isAway ? backoff.nextPause(problem, UNOPENED) : backoff.nextPause(problem);
  options.deadline?.checkPause(pause, problem);
  return pause;
}

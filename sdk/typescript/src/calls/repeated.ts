import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type GraphdError, isGraphdError } from "../errors/index.js";
import { Backoff, isTransient, sleep, UNOPENED } from "./backoff.js";
import type { Caller, CallOptions } from "./caller.js";

/**
 * Makes a call again while the server is away or busy: one that changes nothing, or has a request id,
 * with which it is done once.
 */
export async function callRepeatedly<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  const backoff = new Backoff();
  for (;;) {
    try {
      return await caller.unary(method, request, options);
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      await sleep(pauseAfter(caller, error, backoff, options), options.signal);
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
export function pauseAfter(
  caller: Caller,
  problem: GraphdError,
  backoff: Backoff,
  options: CallOptions,
): number {
  options.deadline?.checkProblem(problem);
  if (!isTransient(problem)) throw problem;
  const pause = caller.hasAnswered ? backoff.nextPause(problem) : backoff.nextPause(problem, UNOPENED);
  options.deadline?.checkPause(pause, problem);
  return pause;
}

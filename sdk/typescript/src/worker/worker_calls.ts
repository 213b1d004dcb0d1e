/** The calls of a session that are repeated until the server has answered them. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type Caller, sleep } from "../calls/index.js";
import { GraphdError, isGraphdError } from "../errors/index.js";

const MAY_PASS = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAUTHENTICATED"]); // tokens are replaced
const LOST = "TASK_LEASE_LOST";
const LONGEST_PAUSE = 2_000;

/**
 * Repeats a call until the server has answered it, or the lease that it is for is lost. Whether it is lost, the
 * stream knows: the call may reach another server than the stream, and that one knows less of the task.
 */
export async function callUntilAnswered<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  isLost: () => boolean,
  closed: AbortSignal,
): Promise<MessageShape<O>> {
  for (let pause = 50; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      return await caller.unary(method, request, { signal: closed });
    } catch (error) {
      if (!isGraphdError(error) || closed.aborted) throw error;
      const denied = error.serverReason === LOST;
      if (!denied && !MAY_PASS.has(error.code)) throw error;
      if ((denied || error.code === "DEADLINE_EXCEEDED" || error.code === "UNAUTHENTICATED") && isLost()) {
        throw new GraphdError("the task was given to another worker", { reason: LOST });
      }
    }
    await sleep(pause, closed);
  }
}

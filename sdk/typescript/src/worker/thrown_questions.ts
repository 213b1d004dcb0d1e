import { encode } from "../codec/index.js";
import type { GraphInterrupt } from "../errors/index.js";
import type { Replay } from "../runtime/index.js";

/**
 * Asks on behalf of a `GraphInterrupt` that was thrown by hand, such as `NodeInterrupt`. An answer that it has
 * already does not stop it: it wants to stop.
 */
export function fileQuestions(replay: Replay, { interrupts }: GraphInterrupt): void {
  for (const { value = null } of interrupts) replay.fileQuestion(value, encode(value));
}

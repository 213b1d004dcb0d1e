/** What a run does that begins while its thread has something else to do. */
import { ConcurrencyPolicy, OpenInterruptPolicy } from "../_gen/graphd/v1/run_pb.js";
import { InvalidArgumentError } from "../errors/index.js";

const BUSY = {
  reject: ConcurrencyPolicy.REJECT,
  enqueue: ConcurrencyPolicy.ENQUEUE,
  cancel: ConcurrencyPolicy.CANCEL_ACTIVE,
  rollback: ConcurrencyPolicy.ROLLBACK_ACTIVE,
};
const OPEN = {
  reject: OpenInterruptPolicy.REJECT,
  discard: OpenInterruptPolicy.DISCARD,
  enqueue: OpenInterruptPolicy.ENQUEUE,
};

export type WhenBusy = keyof typeof BUSY;
export type OpenQuestions = keyof typeof OPEN;

export function whenBusyPolicyOf(word: WhenBusy | undefined): ConcurrencyPolicy {
  return word === undefined ? ConcurrencyPolicy.UNSPECIFIED : choose("whenBusy", BUSY, word);
}

/** A run withdraws open questions. One whose call names a version is refused, until it is known to be the thread's. */
export function openPolicyOf(word: OpenQuestions | undefined, version: string): OpenInterruptPolicy {
  if (word !== undefined) return choose("openQuestions", OPEN, word);
  return version === "" ? OpenInterruptPolicy.DISCARD : OpenInterruptPolicy.UNSPECIFIED;
}

function choose<T>(option: string, values: Record<string, T>, word: string): T {
  const value = Object.hasOwn(values, word) ? values[word] : undefined;
  if (value !== undefined) return value;
  const problem = `${option} is ${JSON.stringify(word)}: want ${Object.keys(values).join(", ")}`;
  throw new InvalidArgumentError(problem, { violations: { [option]: problem } });
}

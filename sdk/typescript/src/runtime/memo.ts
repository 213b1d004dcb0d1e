import { createHash } from "node:crypto";
import { interruptOf } from "./interrupt.js";
import type { Place } from "./replay.js";
import { type CurrentTask, currentScope, requiredTask } from "./task.js";

/** What the function of a memo is called with. */
export type MemoCall = {
  /** The same text whenever the function is called for this memo: for the system that the effect is in. */
  idempotencyKey: string;
};

/**
 * Calls a function once per task, stores its value, and returns it ever after. What stands before an `interrupt`
 * runs again with every answer; a memo doesn't: use it around payments, e-mails and model calls.
 */
export async function memo<T>(key: string, code: (call: MemoCall) => T | Promise<T>): Promise<T> {
  if (!key) throw new TypeError("a memo needs a key");
  const task = requiredTask("memo()");
  const scope = currentScope();
  const { place, record } = task.replay.lookUpMemo(scope, key);
  if (record !== undefined) return record.value as T;
  const waiting = task.replay.openQuestion(scope);
  // The node caught the interrupt: nothing new may happen after it.
  if (waiting !== undefined) throw interruptOf(waiting);
  await task.host.confirmLease();
  const result = await code({ idempotencyKey: idempotencyKey(task, place) });
  const recorded = await task.host.recordMemo(place, result);
  task.replay.keepMemo(place, recorded);
  return recorded as T;
}

/** Of the thread, the task and the place; docs/worker-protocol.md has its form. */
export function idempotencyKey(task: Pick<CurrentTask, "host">, { scope, key, index }: Place): string {
  const parts = [task.host.threadId, task.host.taskId, scope, key, String(index)];
  const text = parts.map((part) => `${Buffer.byteLength(part)}:${part},`).join("");
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

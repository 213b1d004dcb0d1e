// The order of the inbox, and whose questions stand first.

import type { Interrupt } from "../api/messages";
import { readTime } from "../text/time";

export interface Caller {
  name: string;
  groups: readonly string[];
}

const urgency: Record<string, number> = { PRIORITY_URGENT: 0, PRIORITY_HIGH: 1, PRIORITY_NORMAL: 2, PRIORITY_LOW: 3 };

/** Orders what is due first before what is due later, and then by urgency and age. */
export function compareQuestions(a: Interrupt, b: Interrupt): number {
  const [dueA, dueB] = [readTime(a.dueTime), readTime(b.dueTime)];
  if (dueA !== dueB && !(Number.isNaN(dueA) && Number.isNaN(dueB))) return Number.isNaN(dueA) ? 1 : Number.isNaN(dueB) ? -1 : dueA - dueB;
  const levels = levelOf(a) - levelOf(b);
  if (levels !== 0) return levels;
  return readTime(a.createTime) - readTime(b.createTime) || (a.interruptId! < b.interruptId! ? -1 : 1);
}

/** Returns 0 for urgent questions, to 3 for those that can wait. */
export function levelOf(q: Interrupt): number {
  return urgency[q.priority ?? ""] ?? 2;
}

/** Returns who looks after a question, "" when no claim holds. */
export function holderOf(q: Interrupt, now: number): string {
  return q.claimedBy && !(readTime(q.claimExpireTime) <= now) ? q.claimedBy : "";
}

/** Tells whether a question stands under "For you": the caller has it, or may take it. */
export function isFor(q: Interrupt, caller: Caller, now: number): boolean {
  const holder = holderOf(q, now);
  if (holder !== "") return holder === caller.name;
  const named = [...(q.assignees ?? []), ...(q.people?.users ?? []), ...(q.delegations ?? []).map((d) => d.to ?? "")];
  if ((q.delegations ?? []).some((d) => d.from === caller.name)) return false;
  return named.includes(caller.name) || [...(q.people?.groups ?? []), ...(q.assignees ?? [])].some((g) => caller.groups.includes(g));
}

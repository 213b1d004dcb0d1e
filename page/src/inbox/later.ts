// Questions that a person has put off: they are hidden in this browser until a time.

import type { Interrupt } from "../api/messages";
import { Store } from "../api/store";

const key = "graphd.later";
const most = 1000;

/** The longest time for which a question is put off. */
export const longest = 7 * 24 * 3600e3;

/** Until when questions are hidden, by id. */
export const putOff = new Store<Readonly<Record<string, number>>>(load());

addEventListener("storage", (e) => e.key === key && putOff.set(load()));

function load(): Record<string, number> {
  try {
    return { ...(JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, number>) };
  } catch {
    return {};
  }
}

/** Hides questions until a time; 0 shows them again. */
export function hideUntil(ids: readonly string[], until: number): void {
  const all = { ...load(), ...Object.fromEntries(ids.map((id) => [id, Math.min(until, Date.now() + longest)])) };
  const kept = Object.entries(all).filter(([, at]) => at > Date.now()).slice(-most);
  putOff.set(Object.fromEntries(kept));
  localStorage.setItem(key, JSON.stringify(putOff.get()));
}

export function isHidden(q: Interrupt, now: number): boolean {
  return putOff.get()[q.interruptId!]! > now;
}

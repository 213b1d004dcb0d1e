// How long tasks took, from the events of their beginning and end.

import type { Event } from "../api/messages";
import { readTime } from "../text/time";
import { placeOfEvent } from "./history";

const begun = new Set(["PHASE_SCHEDULED", "PHASE_STARTED", "PHASE_RESTARTED"]);
const ended = new Set(["PHASE_SUCCEEDED", "PHASE_FAILED", "PHASE_RETRYING"]);

/** Returns the time of each attempt that has ended, by the number of the event that ends it; without time that people took. */
export function readDurations(events: readonly Event[]): ReadonlyMap<Event, number> {
  const starts = new Map<string, number>();
  const durations = new Map<Event, number>();
  for (const e of events) {
    const phase = e.task?.phase ?? "";
    const at = readTime(e.time);
    if (begun.has(phase)) starts.set(e.taskId!, at);
    else if (ended.has(phase) && starts.has(e.taskId!)) durations.set(e, at - starts.get(e.taskId!)!);
    if (phase === "PHASE_RETRYING") starts.set(e.taskId!, at);
  }
  return durations;
}

/** Returns how long the last run of each node took, by its place. */
export function lastDurations(events: readonly Event[], durations: ReadonlyMap<Event, number>): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  for (const e of events) if (durations.has(e) && e.task?.phase === "PHASE_SUCCEEDED") last.set(placeOfEvent(e), durations.get(e)!);
  return last;
}

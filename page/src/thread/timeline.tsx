// Every event of a thread on a line; bars are durations.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Event } from "../api/messages";
import { describeAnswer } from "../question/outcome";
import { titleOf } from "../question/title";
import { JsonObject, readPayload } from "../json/value";
import { plainText, Text } from "../text/marks";
import { nameActor } from "../text/people";
import { formatCount, formatExact, formatMoment, formatSpan, readTime } from "../text/time";
import { WindowedRows } from "../ui/windowed";

type Kind = "run" | "task" | "question" | "state" | "custom";

interface Line {
  event: Event;
  kind: Kind;
  tone: "done" | "failed" | "asked" | "still";
  text: string;
}

const kinds: readonly [Kind, string][] = [["run", "Runs"], ["task", "Nodes"], ["question", "Questions"], ["state", "Checkpoints"], ["custom", "Custom"]];
const rowHeight = 33;

interface Props {
  events: readonly Event[];
  durations: ReadonlyMap<Event, number>;
  dropped: number;
  /** Number of the last event that belongs to the chosen checkpoint; later ones are pale. */
  until: number;
  now: number;
}

export function Timeline({ events, durations, dropped, until, now }: Props): ComponentChildren {
  const [hidden, setHidden] = useState<ReadonlySet<Kind>>(new Set(["state"]));
  const [words, setWords] = useState("");
  const [isFailedOnly, setFailedOnly] = useState(false);
  const lines = useMemo(() => events.flatMap(readLine), [events]);
  const shown = lines.filter((l) => !hidden.has(l.kind) && (!isFailedOnly || l.tone === "failed") && `${l.event.node} ${l.text}`.toLowerCase().includes(words.toLowerCase()));
  const longest = Math.max(1, ...shown.map((l) => durations.get(l.event) ?? 0));
  const toggle = (kind: Kind): void => {
    const next = new Set(hidden);
    if (!next.delete(kind)) next.add(kind);
    setHidden(next);
  };
  return (
    <div class="timeline">
      <div class="sift">
        <input placeholder="Search events" aria-label="Search events" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
        {kinds.filter(([kind]) => lines.some((l) => l.kind === kind)).map(([kind, title]) => (
          <label><input type="checkbox" checked={!hidden.has(kind)} onChange={() => toggle(kind)} />{title}</label>
        ))}
        <label><input type="checkbox" checked={isFailedOnly} onChange={() => setFailedOnly(!isFailedOnly)} />Failed only</label>
      </div>
      {dropped > 0 && <p class="faint">{formatCount(dropped)} older events are not shown.</p>}
      <WindowedRows label="Events" height={rowHeight} count={shown.length} row={(i) => {
        const { event: e, tone, text } = shown[i]!;
        const before = shown[i - 1]?.event;
        const ms = durations.get(e);
        const isLater = Number(e.cursor?.sequence ?? 0) > until;
        return (
          <li key={e.cursor?.sequence} class={`event ${tone}${isLater ? " later" : ""}`}>
            <time title={formatExact(readTime(e.time))}>{momentOf(e, before, now)}</time>
            <i />
            <div title={plainText(text)}>{e.node && e.node !== "__interrupt__" && <b><Text of={e.node} /> </b>}<Text of={text} />{e.actor && <em> {nameActor(e.actor)}</em>}</div>
            {ms !== undefined && ms >= 1 ? <span class="ms"><i style={{ width: Math.max(3, (ms / longest) * 64) + "px" }} />{formatSpan(ms)}</span> : <span class="ms">#{e.cursor?.sequence ?? 0}</span>}
          </li>
        );
      }} />
    </div>
  );
}

/** Returns the time of an event; within a minute, the time since the one before. */
function momentOf(e: Event, before: Event | undefined, now: number): string {
  const at = readTime(e.time);
  const moment = formatMoment(at, now);
  const since = before ? at - readTime(before.time) : NaN;
  return before && moment === formatMoment(readTime(before.time), now) ? (since < 1 ? "" : "+" + formatSpan(since)) : moment;
}

const runWords: Record<string, string> = {
  RUN_STATE_QUEUED: "Run waits behind another one", RUN_STATE_RUNNING: "Run works", RUN_STATE_INTERRUPTED: "Run waits for people",
  RUN_STATE_CANCELLING: "Run is being cancelled", RUN_STATE_SUCCEEDED: "Run has succeeded", RUN_STATE_FAILED: "Run has failed",
  RUN_STATE_CANCELLED: "Run was cancelled", RUN_STATE_TIMED_OUT: "Run has timed out", RUN_STATE_SUPERSEDED: "Run was replaced",
};

/** Returns no line for an event that another one tells as well. */
function readLine(event: Event): Line[] {
  const line = (kind: Kind, tone: Line["tone"], text: string): Line[] => [{ event, kind, tone, text }];
  if (event.runState) {
    const { state = "", failure } = event.runState;
    return line("run", failure ? "failed" : "still", (runWords[state] ?? state) + (failure?.message ? ": " + failure.message : ""));
  }
  if (event.update) {
    const written = readPayload(event.update.values);
    const names = written instanceof JsonObject ? written.members.map(([name]) => name) : [];
    return line("task", "done", names.length > 0 ? "wrote " + names.join(", ") : "wrote nothing");
  }
  if (event.task) return readTask(event, line);
  if (event.interrupt) return (event.interrupt.interrupts ?? []).map((q) => ({ event: { ...event, node: q.node ?? "" }, kind: "question", tone: "asked", text: "asked: " + titleOf(q) }));
  if (event.interruptResolved) {
    return (event.interruptResolved.interrupts ?? []).map((q) => ({
      event: { ...event, node: q.node ?? "" }, kind: "question", tone: "asked",
      text: q.state === "INTERRUPT_STATE_OPEN" ? "question is open again" : q.response || q.dismissed ? "was answered: " + describeAnswer(readPayload(q.response)).toLowerCase() : "question has ended",
    }));
  }
  if (event.checkpoint) return line("state", "still", `checkpoint ${event.checkpoint.checkpoint?.checkpointId ?? ""}`);
  if (event.custom) return line("custom", "still", event.custom.name ?? "event");
  return [];
}

function readTask(event: Event, line: (kind: Kind, tone: Line["tone"], text: string) => Line[]): Line[] {
  const { phase, failure, retryDelay } = event.task!;
  switch (phase) {
    case "PHASE_RETRYING":
      return line("task", "failed", `failed: ${failure?.message ?? ""}, again after ${retryDelay ?? "0s"}`);
    case "PHASE_FAILED":
      return line("task", "failed", "failed: " + (failure?.message ?? ""));
    case "PHASE_SUCCEEDED":
      return line("task", "done", "finished");
    case "PHASE_CANCELLED":
      return line("task", "still", "was stopped");
    case "PHASE_UNASSIGNED":
      return line("task", "failed", "waits for a worker");
    case "PHASE_RESTARTED":
      return line("task", "still", "begins anew" + (failure?.message ? ": " + failure.message : ""));
  }
  return []; // an update, a question or the end tells of it
}

// What happens when, on one line: asked, reminded, escalated, decided without an answer.

import type { ComponentChildren } from "preact";
import type { Interrupt, Step } from "../api/messages";
import { Text } from "../text/marks";
import { formatExact, formatMoment, formatSpan, readDuration, readTime } from "../text/time";
import { describeAnswer } from "./outcome";
import { readPayload } from "../json/value";

interface Moment {
  at: number;
  what: string;
  who: string;
  isDone: boolean;
}

function readMoments(q: Interrupt): Moment[] {
  const asked = readTime(q.createTime);
  const names = (a?: { users?: string[]; groups?: string[] }): string => [...(a?.groups ?? []), ...(a?.users ?? [])].join(", ");
  const moments: Moment[] = [{ at: asked, what: "Asked", who: names(q.people), isDone: true }];
  (q.steps ?? []).forEach((step: Step, i) => {
    const isDone = i < (q.nextStep ?? 0);
    const at = asked + readDuration(step.after);
    if (step.escalate) moments.push({ at, what: isDone ? "Escalated" : "Escalates", who: names(step.escalate), isDone });
    else moments.push({ at, what: isDone ? "Reminded" : "Reminder", who: names(step.remind), isDone });
  });
  if (q.expireTime) {
    const isDone = q.state === "INTERRUPT_STATE_EXPIRED";
    const [what, who] =
      q.expiryAction === "EXPIRY_ACTION_RESUME_DEFAULT" ? ["Default", describeAnswer(readPayload(q.defaultResponse))]
      : q.expiryAction === "EXPIRY_ACTION_CANCEL_RUN" ? ["Cancels", "the run"]
      : ["Expires", "the node fails"];
    moments.push({ at: readTime(q.expireTime), what: what!, who: who!, isDone });
  }
  return moments;
}

/** Shows the steps of a question; nothing when nothing happens by itself. */
export function Steps({ question, now }: { question: Interrupt; now: number }): ComponentChildren {
  const moments = readMoments(question);
  if (moments.length < 2) return null;
  const [first, last] = [moments[0]!.at, moments[moments.length - 1]!.at];
  const gap = Math.min(0.27, 0.9 / (moments.length - 1)); // the texts stand beside each other
  const places = moments.map((m, i) =>
    i === 0 ? 0 : i === moments.length - 1 ? 1 : Math.min(Math.max((m.at - first) / (last - first || 1), gap * i), 1 - gap * (moments.length - 1 - i)),
  );
  const at = placeOf(now, moments, places);
  const next = moments.find((m) => !m.isDone);
  return (
    <section class="steps" aria-label="What happens when">
      <div class="track" aria-hidden="true">
        <i style={{ width: at * 100 + "%" }} />
        <span class="now" style={{ left: at * 100 + "%" }} />
      </div>
      <ol>
        {moments.map((m, i) => (
          <li class={m.isDone ? "done" : m === next ? "next" : ""} style={{ left: places[i]! * 100 + "%" }} title={formatExact(m.at)}>
            <i />
            <b>{m.what}</b>
            <em>
              {m.isDone ? formatMoment(m.at, now) : m.at > now ? "in " + formatSpan(m.at - now) : "now"}
              {m.who && <> · <Text of={m.who} /></>}
            </em>
          </li>
        ))}
      </ol>
    </section>
  );
}

function placeOf(now: number, moments: readonly Moment[], places: readonly number[]): number {
  for (let i = 1; i < moments.length; i++) {
    const [from, to] = [moments[i - 1]!.at, moments[i]!.at];
    if (now < to) return places[i - 1]! + ((places[i]! - places[i - 1]!) * Math.max(0, now - from)) / (to - from || 1);
  }
  return 1;
}

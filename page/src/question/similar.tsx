// How the questions of the same node were answered before, as far as the server remembers.

import type { ComponentChildren } from "preact";
import type { AnswerStatistics, Interrupt } from "../api/messages";
import { client } from "../api/session";
import { readSchema } from "../form/schema";
import { equalJson, readPayload } from "../json/value";
import { Text } from "../text/marks";
import { formatCount, formatExact, formatMoment, formatSpan, readDuration, readTime } from "../text/time";
import { useLoaded } from "../ui/loaded";
import { findDecision } from "./decision";
import { describeAnswer } from "./outcome";

const pause = 200; // who goes through the list asks for nothing

/** Shows how often each decision was made; nothing before the first one. */
export function SimilarAnswers({ question: q, now }: { question: Interrupt; now: number }): ComponentChildren {
  const { value } = useLoaded((signal) => readAnswers(q, signal), [q.interruptId]);
  const outcomes = value ? listOutcomes(q, value) : [];
  if (!value || outcomes.length === 0) return null;
  const since = readTime(value.countsSince);
  return (
    <section class="votes" aria-label="Like this">
      <h2>Like this <small>
        {value.medianWait && `half within ${formatSpan(readDuration(value.medianWait))}, `}
        counted by this server since <time title={formatExact(since)}>{formatMoment(since, now)}</time>
      </small></h2>
      <ul class="meta">{outcomes.map(([title, count]) => <li class="badge"><Text of={title} /> <b>{formatCount(count)}</b></li>)}</ul>
    </section>
  );
}

async function readAnswers(q: Interrupt, signal: AbortSignal): Promise<AnswerStatistics> {
  await new Promise((resolve) => setTimeout(resolve, pause));
  signal.throwIfAborted();
  return client.call<AnswerStatistics>("InterruptService/GetAnswerStatistics", { graph: q.graph, node: q.node }, signal);
}

/** Lists what became of questions, in the words of the form of this one. */
function listOutcomes(q: Interrupt, of: AnswerStatistics): [string, number][] {
  const options = findDecision(readSchema(readPayload(q.responseSchema)))?.options ?? [];
  const decided = (of.decisions ?? []).map(({ value, count }): [string, number] => {
    const decision = readPayload(value);
    return [options.find((o) => decision !== undefined && equalJson(o.value, decision))?.title ?? describeAnswer(decision), Number(count)];
  });
  const [answered, dismissed, defaulted, expired] = [of.answered, of.dismissed, of.defaulted, of.expired].map((n) => Number(n ?? 0)) as [number, number, number, number];
  const others = answered - dismissed - decided.reduce((sum, [, count]) => sum + count, 0);
  const all: [string, number][] = [...decided, [decided.length > 0 ? "Otherwise" : "Answered", others], ["Declined to answer", dismissed], ["Default", defaulted], ["No answer in time", expired]];
  return all.filter(([, count]) => count > 0);
}

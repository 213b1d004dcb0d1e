/** What a task did before, from its assignment. */
import { Drift } from "../_gen/graphd/v1/interrupt_pb.js";
import type { Journal, Answer as WireAnswer } from "../_gen/graphd/v1/worker_task_pb.js";
import { payloadText } from "../codec/index.js";
import { type Answer, type Place, Replay } from "../runtime/index.js";
import { decodeValue } from "../state/index.js";
import type { Drift as DriftWord } from "../values/index.js";

const WORDS: Partial<Record<Drift, DriftWord>> = {
  [Drift.FAIL]: "fail",
  [Drift.ASK_AGAIN]: "ask_again",
  [Drift.ACCEPT]: "accept",
};

/** The journal of an assignment, ready to be matched. */
export function readJournal(journal: Journal | undefined): Replay {
  if (journal === undefined) return new Replay();
  const answers: { place: Place; answer: Answer }[] = [];
  const memos: { place: Place; value: unknown }[] = [];
  for (const { scope, key, index, entry } of journal.entries) {
    const place = { scope, key, index };
    if (entry.case === "memo") memos.push({ place, value: decodeValue(payloadText(entry.value) ?? "null") });
    else if (entry.case === "answer") answers.push({ place, answer: readAnswer(entry.value) });
  }
  return new Replay(answers, memos, { drift: WORDS[journal.drift], driftIgnore: journal.driftIgnore });
}

function readAnswer({ interruptId, outcome, seen, secretSeen }: WireAnswer): Answer {
  const known = { seen, secretSeen, questionId: interruptId };
  if (outcome.case === "value") return { ...known, value: decodeValue(payloadText(outcome.value) ?? "null") };
  if (outcome.case === "dismissed") return { ...known, dismissed: outcome.value.reason };
  return { ...known, expired: true };
}

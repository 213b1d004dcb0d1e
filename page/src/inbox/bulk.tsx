// One answer to several questions.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { AnswerOutcome, Interrupt } from "../api/messages";
import { client, noteError } from "../api/session";
import { dropHidden, type Problems } from "../form/form";
import { readSchema } from "../form/schema";
import { type Json, JsonObject, printJson, readPayload } from "../json/value";
import { retract } from "../question/actions";
import { EntryFields } from "../question/answer";
import { beginAnswer, decidedValue, findDecision } from "../question/decision";
import { describeAnswer, toneOf } from "../question/outcome";
import { titleOf } from "../question/title";
import { toTitle } from "../form/schema";
import { Text } from "../text/marks";
import { readDuration } from "../text/time";
import { Dialog } from "../ui/dialog";
import { showToast } from "../ui/toast";

interface Props {
  questions: readonly Interrupt[];
  close: () => void;
  /** Is called when answers are stored. */
  done: () => void;
}

const mostDifferences = 3;
const mostRefusals = 20; // that are shown

export function BulkDialog({ questions, close, done }: Props): ComponentChildren {
  const schemas = new Set(questions.map((q) => q.responseSchema?.json ?? ""));
  const form = useMemo(() => readSchema(readPayload(questions[0]?.responseSchema)), []);
  const decision = useMemo(() => findDecision(form), [form]);
  const [value, setValue] = useState<Json | undefined>(() => beginAnswer(form, decision));
  const [note, setNote] = useState("");
  const [refused, setRefused] = useState<readonly AnswerOutcome[]>([]);
  const [problem, setProblem] = useState("");
  const [progress, setProgress] = useState<number | undefined>(undefined);
  const requestId = useRef(crypto.randomUUID());
  const decided = decision ? decidedValue(decision, value) : value;
  const send = async (e: Event): Promise<void> => {
    e.preventDefault();
    const given = dropHidden(form, value);
    if (given === undefined) return;
    setProgress(0);
    setProblem("");
    const stored: AnswerOutcome[] = [];
    const others: AnswerOutcome[] = [];
    const targets = questions.map((q) => ({ threadId: q.threadId, interruptId: q.interruptId, ...(q.seen && { seen: q.seen }) }));
    try {
      const request = { targets: { targets }, value: { json: printJson(given) }, note, requestId: requestId.current };
      for await (const outcome of client.follow<AnswerOutcome>("InterruptService/AnswerInterrupts", request)) {
        (outcome.stored ? stored : others).push(outcome);
        setProgress(stored.length + others.length);
      }
    } catch (err) {
      noteError(err);
      setProblem(err instanceof Error ? err.message : String(err));
    }
    setProgress(undefined);
    setRefused(others);
    if (stored.length > 0) tellStored(stored, given);
    requestId.current = crypto.randomUUID();
    if (others.length === 0 && stored.length === questions.length) close();
    done();
  };
  const tellStored = (stored: readonly AnswerOutcome[], given: Json): void => {
    const undo = Math.min(...questions.map((q) => readDuration(q.undo) || 0));
    const title = `${describeAnswer(given)}: ${stored.length} questions`;
    if (!(undo > 0)) return showToast({ title, about: "The answers are stored" });
    const byId = new Map(questions.map((q) => [q.interruptId, q]));
    showToast({ title, about: "", until: Date.now() + undo, undo: () => void takeAllBack(stored.map((o) => byId.get(o.interruptId)!)).finally(done) });
  };
  if (schemas.size > 1) {
    return (
      <Dialog title={`${questions.length} questions`} close={close}>
        <p>These questions want different answers. Choose questions of one kind.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title={`Answer ${questions.length} questions`} close={close}>
      <form class="answer" onSubmit={(e) => void send(e)}>
        <Differences questions={questions} />
        <EntryFields form={form} decision={decision} value={value} decided={decided} isBreakpoint={false} enter={setValue} problems={{} satisfies Problems} />
        <div class="field">
          <label class="label" for="bulk-note">Remark<i>optional</i></label>
          <input id="bulk-note" dir="auto" autoComplete="off" value={note} onInput={(e) => setNote(e.currentTarget.value)} />
        </div>
        {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
        {refused.length > 0 && (
          <div role="alert">
            <p class="problem">{refused.length} are not answered:</p>
            <ul>{refused.slice(0, mostRefusals).map((o) => <li><span class="mono"><Text of={o.threadId ?? ""} /></span> <Text of={o.message ?? ""} /></li>)}</ul>
          </div>
        )}
        <button type="submit" class={"main " + (decided === undefined ? "" : toneOf(decided))} disabled={progress !== undefined || (decision ? decided === undefined : value === undefined)}>
          {progress === undefined ? `Answer ${questions.length} questions` : `${progress} of ${questions.length}…`}
        </button>
      </form>
    </Dialog>
  );
}

async function takeAllBack(questions: readonly Interrupt[]): Promise<void> {
  const results = await Promise.allSettled(questions.map(retract));
  const failed = results.filter((r) => r.status === "rejected").length;
  if (failed > 0) showToast({ title: `${failed} of ${results.length} could not be taken back`, about: "They are in effect already", isProblem: true });
  else showToast({ title: `Taken back: ${results.length} answers`, about: "The questions are open again" });
}

/** Shows what the questions do not have in common: those facts that differ most. */
function Differences({ questions }: { questions: readonly Interrupt[] }): ComponentChildren {
  const values = questions.map((q) => readPayload(q.value)).filter((v) => v instanceof JsonObject);
  const names = new Set(values.flatMap((v) => v.members.map(([name]) => name)));
  const differing = [...names]
    .map((name) => ({ name, texts: [...new Set(values.map((v) => (v.get(name) === undefined ? "none" : printJson(v.get(name)!))))] }))
    .filter((d) => d.texts.length > 1)
    .sort((a, b) => b.texts.length - a.texts.length)
    .slice(0, mostDifferences);
  return (
    <>
      <p><Text of={questions.slice(0, 3).map(titleOf).join(" · ") + (questions.length > 3 ? " …" : "")} /></p>
      {differing.length > 0 && (
        <dl class="facts">
          {differing.map((d) => (
            <div><dt><Text of={toTitle(d.name)} /></dt><dd><Text of={d.texts.slice(0, 4).join(", ") + (d.texts.length > 4 ? ` and ${d.texts.length - 4} others` : "")} /></dd></div>
          ))}
        </dl>
      )}
    </>
  );
}

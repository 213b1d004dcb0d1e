// One answer to several questions.

import { newRequestId } from "../api/connect";
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { AnswerOutcome, Interrupt } from "../api/messages";
import { client, noteError } from "../api/session";
import { dropHidden, type Problems } from "../form/form";
import { readSchema } from "../form/schema";
import { Decimal, type Json, JsonObject, printJson, readPayload } from "../json/value";
import { isAllowed, retract } from "../question/actions";
import { EntryFields } from "../question/answer";
import { beginAnswer, decidedValue, findDecision } from "../question/decision";
import { describeAnswer, toneOf } from "../question/outcome";
import { titleOf } from "../question/title";
import { toTitle } from "../form/schema";
import { Text } from "../text/marks";
import { formatCount, readDuration } from "../text/time";
import { Dialog } from "../ui/dialog";
import { showToast } from "../ui/toast";
import { type Failure, Failures } from "./several";

interface Props {
  questions: readonly Interrupt[];
  close: () => void;
  /** Is called when answers are stored. */
  done: () => void;
}

const mostDifferences = 3;
const mostTargets = 10_000; // of one call

export function BulkDialog({ questions: chosen, close, done }: Props): ComponentChildren {
  const answerable = useMemo(() => chosen.filter((q) => isAllowed(q, "ANSWER") && q.reason !== "breakpoint"), []);
  const questions = answerable.slice(0, mostTargets);
  const [left, setLeft] = useState(questions); // those without an answer yet
  const schemas = new Set(questions.map((q) => q.responseSchema?.json ?? ""));
  const form = useMemo(() => readSchema(readPayload(questions[0]?.responseSchema)), []);
  const decision = useMemo(() => findDecision(form), [form]);
  const [value, setValue] = useState<Json | undefined>(() => beginAnswer(form, decision));
  const [note, setNote] = useState("");
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const [problem, setProblem] = useState("");
  const [progress, setProgress] = useState<number | undefined>(undefined);
  const requestId = useRef(newRequestId());
  const decided = decision ? decidedValue(decision, value) : value;
  const send = async (e: Event): Promise<void> => {
    e.preventDefault();
    const given = dropHidden(form, value);
    if (given === undefined) return;
    setProgress(0);
    setProblem("");
    const byId = new Map(left.map((q) => [q.interruptId, q]));
    const stored = new Set<Interrupt>();
    const refused: Failure[] = [];
    const targets = left.map((q) => ({ threadId: q.threadId, interruptId: q.interruptId, ...(q.seen && { seen: q.seen }) }));
    try {
      const request = { targets: { targets }, value: { json: printJson(given) }, note, requestId: requestId.current };
      for await (const o of client.follow<AnswerOutcome>("InterruptService/AnswerInterrupts", request)) {
        const question = byId.get(o.interruptId)!;
        if (o.stored) stored.add(question);
        else refused.push({ question, error: o, message: o.message ?? o.reason ?? "" });
        setProgress(stored.size + refused.length);
      }
      requestId.current = newRequestId();
    } catch (err) {
      noteError(err);
      setProblem(err instanceof Error ? err.message : String(err)); // the same request answers those that are left
    }
    setProgress(undefined);
    setFailures(refused);
    setLeft(left.filter((q) => !stored.has(q)));
    if (stored.size > 0) tellStored([...stored], given);
    if (stored.size < left.length) return;
    done();
    close();
  };
  const tellStored = (stored: readonly Interrupt[], given: Json): void => {
    const undo = Math.min(...stored.map((q) => readDuration(q.undo) || 0));
    const title = `${describeAnswer(given)}: ${stored.length} questions`;
    if (!(undo > 0)) return showToast({ title, about: "The answers are stored" });
    showToast({ title, about: "", until: Date.now() + undo, undo: () => void takeAllBack(stored).finally(done) });
  };
  const others = chosen.length - answerable.length;
  if (schemas.size !== 1) {
    return (
      <Dialog title={`${chosen.length} questions`} close={close}>
        <p>{schemas.size === 0 ? "You may answer none of these questions." : "These questions want different answers. Choose questions of one kind."}</p>
      </Dialog>
    );
  }
  return (
    <Dialog title={`Answer ${formatCount(left.length)} questions`} close={close}>
      <form class="answer" onSubmit={(e) => void send(e)}>
        {others > 0 && <p class="faint">{formatCount(others)} more are chosen, which you may not answer.</p>}
        {answerable.length > mostTargets && <p class="faint">These are the first {formatCount(mostTargets)} of {formatCount(answerable.length)}: so many are answered at once.</p>}
        <Differences questions={questions} />
        <EntryFields form={form} decision={decision} value={value} decided={decided} isBreakpoint={false} enter={setValue} problems={{} satisfies Problems} />
        <div class="field">
          <label class="label" for="bulk-note">Remark<i>optional</i></label>
          <input id="bulk-note" dir="auto" autoComplete="off" value={note} onInput={(e) => setNote(e.currentTarget.value)} />
        </div>
        {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
        <Failures of={failures} what="not answered" />
        <button type="submit" class={"main " + (decided === undefined ? "" : toneOf(decided))} disabled={progress !== undefined || (decision ? decided === undefined : value === undefined)}>
          {progress === undefined ? `Answer ${formatCount(left.length)} questions` : `${formatCount(progress)} of ${formatCount(left.length)}…`}
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
    .map((name) => ({ name, texts: [...new Set(values.map((v) => showShort(v.get(name))))], isNumber: values.every((v) => v.get(name) instanceof Decimal) }))
    .filter((d) => d.texts.length > 1)
    .sort((a, b) => b.texts.length - a.texts.length)
    .slice(0, mostDifferences);
  return (
    <>
      <p><Text of={questions.slice(0, 3).map(titleOf).join(" · ") + (questions.length > 3 ? " …" : "")} /></p>
      {differing.length > 0 && (
        <dl class="facts">
          {differing.map((d) => (
            <div><dt><Text of={toTitle(d.name)} /></dt><dd><Text of={describeRange(d.texts, d.isNumber)} /></dd></div>
          ))}
        </dl>
      )}
    </>
  );
}

function showShort(value: Json | undefined): string {
  const text = value === undefined ? "none" : typeof value === "string" ? value : printJson(value);
  return text.length > 60 ? text.slice(0, 60) + "…" : text;
}

/** Says which texts there are: of numbers the smallest and the largest. */
function describeRange(texts: readonly string[], isNumber: boolean): string {
  const few = 4;
  if (!isNumber || texts.length <= few) return texts.slice(0, few).join(", ") + (texts.length > few ? ` and ${formatCount(texts.length - few)} others` : "");
  const ordered = texts.toSorted((a, b) => Number(a) - Number(b)); // the order alone; the digits stay
  return `${ordered[0]} to ${ordered[ordered.length - 1]}, ${formatCount(texts.length)} values`;
}

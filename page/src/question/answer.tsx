// The answer that a person enters: the decision, the fields it needs, and the bar that sends it.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { CallError, newRequestId } from "../api/connect";
import type { Interrupt } from "../api/messages";
import { noteError, ownName } from "../api/session";
import { dropHidden, FieldEntry, idOf, JsonEntry, Members, type Problems } from "../form/form";
import { type Field, readSchema, toTitle } from "../form/schema";
import { equalJson, type Json, printJson, readPayload } from "../json/value";
import { useKeys } from "../keys";
import { Text } from "../text/marks";
import { shortName } from "../text/people";
import { formatSpan, readDuration, readTime } from "../text/time";
import { Banner } from "../ui/banner";
import { Key } from "../ui/key";
import { showToast } from "../ui/toast";
import * as actions from "./actions";
import { beginAnswer, decide, decidedValue, type Decision, findDecision } from "./decision";
import { dropDraft, loadDraft, saveDraft } from "./drafts";
import { describeAnswer, describeOutcome, toneOf } from "./outcome";
import { isTakenBack, noteAnswer, takeBack } from "./take_back";

interface Props {
  question: Interrupt;
  mayAnswer: boolean;
  /** Is told of a question that an own call has changed. */
  changed: (q: Interrupt) => void;
  /** Goes to the next question. */
  next: () => void;
}

/** What the form of an answer has and does. */
export type Answer = ReturnType<typeof useAnswer>;

/** Keeps the answer that is being entered to a question. */
export function useAnswer({ question: q, mayAnswer, changed, next }: Props) {
  const form = useMemo(() => readSchema(readPayload(q.responseSchema)), [q.responseSchema?.json]);
  const decision = useMemo(() => findDecision(form), [form]);
  const draft = useMemo(() => (q.secret?.length ? undefined : loadDraft(q.interruptId!)), [q.interruptId]);
  const [value, setValue] = useState<Json | undefined>(() => draft?.value ?? beginAnswer(form, decision));
  const [note, setNote] = useState(draft?.note ?? "");
  const [problems, setProblems] = useState<Problems>({});
  const [conflict, setConflict] = useState<ComponentChildren>(undefined);
  const [isSending, setSending] = useState(false);
  const [isTouched, setTouched] = useState(false);
  const sent = useRef({ text: "", id: "" });
  const isBreakpoint = q.reason === "breakpoint";
  const decided = decision ? decidedValue(decision, value) : value;
  const isReady = isBreakpoint || (decision ? decided !== undefined : value !== undefined || form.kind === "json" || form.kind === "group");

  const enter = (v: Json | undefined): void => {
    setValue(v);
    setTouched(true);
    setProblems({});
    if (v !== undefined && !q.secret?.length) saveDraft(q.interruptId!, { value: v, note });
  };
  const send = (outcome: { value: Json } | { dismissal: string }): void => {
    if (isSending) return;
    if (document.querySelector(".answer .problem") && Object.keys(problems).length === 0) return focusProblem();
    const text = JSON.stringify("value" in outcome ? printJson(outcome.value) : outcome) + note;
    if (text !== sent.current.text) sent.current = { text, id: newRequestId() }; // the same answer again is no other one
    setSending(true);
    noteAnswer(q);
    actions.answer(q, outcome, note, sent.current.id).then(stored, refused).finally(() => setSending(false));
  };
  const stored = (then: Interrupt): void => {
    setTouched(false);
    dropDraft(q.interruptId!);
    if (isTakenBack(q)) return;
    const effective = readTime(then.effectiveTime);
    const title = `${isBreakpoint ? "Went on" : describeAnswer(dropHidden(form, value))}: ${q.threadId}`;
    const undo = (): void => takeBack(then, changed);
    if (effective > Date.now()) showToast({ title, about: "", until: effective, undo });
    else showToast({ title, about: then.state === "INTERRUPT_STATE_OPEN" ? "Your vote is stored; others must agree" : "The answer is stored" });
    changed(then);
    next();
  };
  const refused = (err: unknown): void => {
    noteError(err);
    if (!(err instanceof CallError)) throw err;
    if (err.reason === "RESPONSE_SCHEMA_MISMATCH") return showViolations(err);
    setConflict(<Banner icon="warn" tone="no"><b>Your answer was not stored.</b> <Text of={err.message} /></Banner>);
    actions.fetchQuestion(q.threadId!, q.interruptId!).then((then) => {
      if (then.state !== "INTERRUPT_STATE_OPEN") showToast({ title: `${describeOutcome(then)}`, about: "Your answer was not stored", isProblem: true, until: Date.now() + 15_000 });
      changed(then);
    }, noteError);
  };
  const showViolations = (err: CallError): void => {
    const found: Record<string, string> = {};
    for (const v of err.violations) found[/\.value(\/.*)?$/.exec(v.field)?.[1] ?? ""] ??= v.description;
    if (err.violations.length === 0) found[""] = err.message;
    setProblems(found);
    requestAnimationFrame(focusProblem);
  };
  const submit = (): void => {
    const given = dropHidden(form, value);
    if (isBreakpoint) send({ value: null });
    else if (given === undefined) {
      setProblems({ "": "is missing" });
      requestAnimationFrame(focusProblem);
    } else send({ value: given });
  };
  useKeys(!mayAnswer ? [] : [
    ...(decision?.options ?? []).map((o, i) => ({ keys: [String(i + 1)], about: "decide: " + o.title, run: () => enter(decide(decision!, value, o.value)) })),
    { keys: ["Mod+Enter"], about: "answer", run: () => isReady && submit() },
  ]);
  return { q, form, decision, value, decided, enter, note, setNote, problems, conflict, isTouched, isReady, isSending, isBreakpoint, submit, decline: () => send({ dismissal: note }) };
}

/** The form of an answer. */
export function AnswerFields({ answer: a }: { answer: Answer }): ComponentChildren {
  return (
    <section class="answer" aria-label="Your answer">
      {a.conflict}
      <Agreement answer={a} />
      <EntryFields {...a} />
      {!a.isBreakpoint && (
        <div class="fields">
          <div class="field">
            <label class="label" for="note">Remark<i>optional</i></label>
            <input id="note" dir="auto" autoComplete="off" value={a.note} maxLength={4000} onInput={(e) => a.setNote(e.currentTarget.value)} />
          </div>
        </div>
      )}
    </section>
  );
}

export interface Entered {
  form: Field;
  decision: Decision | undefined;
  value: Json | undefined;
  decided: Json | undefined;
  isBreakpoint: boolean;
  enter: (value: Json | undefined) => void;
  problems: Problems;
}

/** The decision, and the fields that it needs. */
export function EntryFields({ form, decision, value, decided, isBreakpoint, enter, problems }: Entered): ComponentChildren {
  const problem = problems[decision?.name ? "/" + decision.name : ""];
  return (
    <>
      {decision && (
        <div class="decide" role="radiogroup" aria-label={toTitle(decision.name) || "Answer"} id={idOf(decision.name ? "/" + decision.name : "")}>
          {decision.options.map((o, i) => {
            const isOn = equalJson(o.value, decided);
            return (
              <label class={isOn ? "on " + toneOf(o.value) : ""}>
                <input type="radio" name="decision" checked={isOn} onChange={() => enter(decide(decision, value, o.value))} />
                <span dir="auto"><Text of={o.title} /></span><Key of={String(i + 1)} />
              </label>
            );
          })}
          {problem && <span class="problem"><Text of={problem} /></span>}
        </div>
      )}
      {!isBreakpoint && <div class="fields"><FormFields {...{ form, decision, value, enter, problems }} /></div>}
      {problems[""] && decision?.name && <span class="problem"><Text of={problems[""]} /></span>}
    </>
  );
}

/** Offers the answer of who has voted already: a vote counts for one answer. */
function Agreement({ answer: a }: { answer: Answer }): ComponentChildren {
  const other = (a.q.votes ?? []).find((v) => v.principal !== ownName() && v.agrees && v.value);
  if (!other || equalJson(dropHidden(a.form, a.value), readPayload(other.value))) return null;
  const name = shortName(other.principal ?? "");
  return (
    <p class="agree">
      <button type="button" class="ghost" onClick={() => a.enter(readPayload(other.value))}>Agree with {name}</button>
      {a.decided !== undefined && toneOf(a.decided) !== "no" && <small>Another answer than {name}’s: that vote does not count for it.</small>}
    </p>
  );
}

/** The bar at the bottom: what the button will do, in words, and the button. */
export function AnswerBar({ answer: a }: { answer: Answer }): ComponentChildren {
  const undo = readDuration(a.q.undo);
  const isVote = (a.q.people?.approvals ?? 1) > 1;
  const effect = (): ComponentChildren => {
    if (a.isBreakpoint) return "The run waits here";
    if (!a.isReady) return a.decision && <span class="by-key">Decide with <Key of="1" />–<Key of={String(a.decision.options.length)} /></span>;
    return undo > 0 ? <>Takes effect after <b>{formatSpan(undo)}</b>; until then you can undo it</> : "Takes effect at once";
  };
  return (
    <footer class="bar">
      <span class="effect">{effect()}</span>
      {!a.isBreakpoint && <button type="button" class="ghost" disabled={a.isSending} onClick={a.decline} title="Say that no answer will come; the remark says why">Decline</button>}
      <button type="button" class={"main " + (a.decided === undefined ? "" : toneOf(a.decided))} disabled={!a.isReady || a.isSending} onClick={a.submit} aria-keyshortcuts="Control+Enter Meta+Enter">
        {a.isBreakpoint ? "Go on" : isVote ? "Cast your vote" : "Answer"}<Key of="Mod+Enter" />
      </button>
    </footer>
  );
}

/** The fields besides the decision. */
function FormFields({ form, decision, ...given }: Pick<Entered, "form" | "decision" | "value" | "enter" | "problems">): ComponentChildren {
  const entry = { pointer: "", isRequired: true, ...given };
  if (decision?.name === "") return null; // the answer is the decision
  if (form.kind === "group") return <Members group={form} skip={decision?.name} {...entry} />;
  if (form.kind === "json") return <JsonEntry field={{ ...form, title: form.title || "Answer, as JSON" }} {...entry} />;
  return <FieldEntry field={{ ...form, title: form.title || "Answer" }} {...entry} />;
}

/** Sets the focus to the first field with a problem. */
function focusProblem(): void {
  const place = document.querySelector<HTMLElement>('.answer [aria-invalid="true"]') ?? document.querySelector<HTMLElement>(".answer .problem");
  place?.scrollIntoView({ block: "center" });
  (place?.matches("input, textarea, select") ? place : place?.querySelector<HTMLElement>("input, textarea, select"))?.focus();
}

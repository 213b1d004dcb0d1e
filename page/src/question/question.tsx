// One question, in the order of thinking: what it is, who has it, what happens when, what it says,
// who has agreed, what to decide, what happened.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Interrupt, TrailEntry } from "../api/messages";
import { noteError, ownName } from "../api/session";
import { holderOf } from "../inbox/order";
import { type Json, readPayload } from "../json/value";
import { useKeys } from "../keys";
import { addressOf } from "../route";
import { Markdown } from "../text/markdown";
import { Text } from "../text/marks";
import { shortName } from "../text/people";
import { useNow } from "../ui/clock";
import { Icon } from "../ui/icons";
import { Banner } from "../ui/banner";
import { Key } from "../ui/key";
import { useLater } from "../ui/later";
import { Avatar } from "../ui/people";
import { Tabs } from "../ui/tabs";
import { showProblem, showToast } from "../ui/toast";
import * as actions from "./actions";
import { AnswerBar, AnswerFields, useAnswer } from "./answer";
import { Facts } from "./facts";
import { Steps } from "./steps";
import { bodyOf, titleOf } from "./title";
import { Votes } from "./votes";

interface Props {
  question: Interrupt;
  /** Is told of a question that an own call has changed. */
  changed: (q: Interrupt) => void;
  /** Goes to the next question. */
  next: () => void;
  /** Opens the dialog in which it is assigned; undefined when it can’t be. */
  assign: (() => void) | undefined;
  /** Opens the dialog in which it is put off. */
  later: () => void;
}

export function QuestionView({ question: q, changed, next, assign, later }: Props): ComponentChildren {
  const now = useNow();
  const [trail, setTrail] = useState<readonly TrailEntry[]>([]);
  const [refusal, setRefusal] = useState("");
  const [tab, setTab] = useState("trail");
  const past = useLater(true, () => import("./past"));
  const [shown, setShown] = useState<Json | undefined>(undefined); // the value with parts that were revealed
  const value = useMemo(() => readPayload(q.value), [q.value?.json]);
  const me = ownName();
  const isOpen = q.state === "INTERRUPT_STATE_OPEN";
  const isBreakpoint = q.reason === "breakpoint";
  const similar = useLater(isOpen, () => import("./similar"));
  const mayAnswer = refusal === "" && actions.isAllowed(q, "ANSWER");
  const mayComment = actions.isAllowed(q, "COMMENT");
  const answer = useAnswer({ question: q, mayAnswer, changed, next });

  useEffect(() => {
    const closing = new AbortController();
    const load = async (): Promise<void> => {
      setTrail(await (await import("./past")).fetchTrail(q.threadId!, q.interruptId!, closing.signal));
      setRefusal(await actions.fetchRefusal(q, closing.signal));
    };
    const timer = setTimeout(() => load().catch((err: unknown) => closing.signal.aborted || noteError(err)), 120); // who goes through the list reads no trail
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [q.interruptId, q.etag, q.trailSize]);

  const holder = holderOf(q, now);
  useEffect(() => {
    if (q.claimedBy && holder === "" && isOpen) actions.fetchQuestion(q.threadId!, q.interruptId!).then(changed, noteError); // others may take it now
  }, [holder]);
  const run = (what: string, call: () => Promise<Interrupt>): void => {
    call().then(changed, (err: unknown) => {
      noteError(err);
      showProblem(what, err);
    });
  };
  const mayClaim = holder === me ? actions.isAllowed(q, "RELEASE") : actions.isAllowed(q, "CLAIM");
  const claim = (): void => run(holder === me ? "It could not be given back" : "It could not be taken", () => (holder === me ? actions.release(q) : actions.claim(q)));
  const reveal = (pointer: string): void => {
    actions.reveal(q, pointer).then((r) => setShown(readPayload(r.value)), (err: unknown) => showProblem("It can't be shown", err));
  };
  const copyLink = (): void => {
    const address = location.origin + addressOf("inbox", [q.threadId!, q.interruptId!]);
    const copied = navigator.clipboard?.writeText(address) ?? Promise.reject(new Error("Only pages over HTTPS may copy: this is the address"));
    copied.then(() => showToast({ title: "The link is copied", about: "Who opens it needs the right to see the question" }), (err: unknown) => showProblem(address, err));
  };
  useKeys([
    ...(mayClaim ? [{ keys: ["c"], about: "take it, give it back", run: claim }] : []),
    { keys: ["l"], about: "copy the link", run: copyLink },
    ...(mayComment ? [{ keys: ["m"], about: "comment", run: () => document.getElementById("comment")?.focus() }] : []),
  ]);
  const groups = q.people?.groups ?? [];
  return (
    <section class="detail" aria-label="Question">
      <div class="scroll">
        <header>
          <div class="crumb">
            <span class="chip"><Icon name="ask" size={13} /><Text of={(q.reason || "question").replaceAll("_", " ")} /></span>
            <a href={addressOf("graphs", [q.graph ?? ""])}><Text of={q.graph ?? ""} /></a>
            <span aria-hidden="true">›</span>
            <span><Text of={q.node ?? ""} /></span>
            <a class="thread" href={addressOf("threads", [q.threadId ?? ""])}><Text of={q.threadId ?? ""} /></a>
          </div>
          <h1 dir="auto"><Text of={titleOf(q)} /></h1>
          <div class="meta">
            {holder && holder === me ? (
              <button type="button" class="who" onClick={claim} title="Give it back"><Avatar principal={me} size={20} />You have it</button>
            ) : holder && isOpen ? (
              <span class="who other"><Avatar principal={holder} size={20} />{shortName(holder)} has it</span>
            ) : mayClaim && (
              <button type="button" class="ghost" onClick={claim}><Icon name="person" size={14} />Take it<Key of="C" /></button>
            )}
            {q.assignees?.length && <span class="ghost still" title="Assigned"><Icon name="person" size={14} /><Text of={q.assignees.join(", ")} /></span>}
            {groups.length > 0 && <span class="ghost still"><Icon name="group" size={14} /><Text of={groups.join(", ")} /></span>}
            {assign && <button type="button" class="ghost" onClick={assign}><Icon name="person" size={14} />Assign<Key of="A" /></button>}
            {isOpen && <button type="button" class="ghost" onClick={later}><Icon name="clock" size={14} />Later<Key of="H" /></button>}
            <button type="button" class="ghost" onClick={copyLink}><Icon name="link" size={14} />Link<Key of="L" /></button>
          </div>
        </header>
        {refusal && isOpen && <Banner icon="cross" tone="warn"><Text of={refusal} /></Banner>}
        {!isOpen && past && <past.Resolution question={q} now={now} changed={changed} entered={answer.isTouched && !answer.isSending ? answer.value : undefined} />}
        <Steps question={q} now={now} />
        <section class="body">
          {bodyOf(q) && <Markdown text={bodyOf(q)} />}
          {value !== undefined && !isBreakpoint && !isTitle(value, q) && <Facts value={shown ?? value} reveal={actions.isAllowed(q, "REVEAL") ? reveal : undefined} />}
        </section>
        <Votes question={q} caller={me} mayAnswer={mayAnswer} now={now} />
        {mayAnswer && <AnswerFields answer={answer} />}
        {similar && isOpen && !isBreakpoint && <similar.SimilarAnswers question={q} now={now} />}
        <section class="history">
          <Tabs label="About this question" tabs={[{ id: "trail", title: "Trail", count: trail.length }, { id: "json", title: "JSON" }]} chosen={tab} choose={setTab}>
            {past && (tab === "trail" ? <past.Trail entries={trail} now={now} /> : <past.RawView question={q} value={shown ?? value} />)}
          </Tabs>
          {past && mayComment && <past.CommentBox question={q} added={(e) => setTrail([...trail, e])} />}
        </section>
      </div>
      {mayAnswer && <AnswerBar answer={answer} />}
    </section>
  );
}

/** Tells whether a value says nothing besides the title. */
function isTitle(value: Json, q: Interrupt): boolean {
  return typeof value === "string" && value === titleOf(q);
}

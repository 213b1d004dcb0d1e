// The inbox: the list, the filter, and the question that is open.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Interrupt } from "../api/messages";
import { noteError, ownGroups, ownName } from "../api/session";
import { useStore } from "../api/store";
import { useKeys } from "../keys";
import { fetchQuestion, isAllowed } from "../question/actions";
import { QuestionView } from "../question/question";
import { titleOf } from "../question/title";
import { addressOf, navigate, type Route, route as shownRoute } from "../route";
import { Text } from "../text/marks";
import { readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { Icon } from "../ui/icons";
import { Key } from "../ui/key";
import { useLater } from "../ui/later";
import { showProblem } from "../ui/toast";
import { readFilter } from "./filter";
import { isHidden, putOff } from "./later";
import { countText, QuestionList, type Row } from "./list";
import { type Inbox, Questions, type Section } from "./questions";

export function InboxScreen({ route }: { route: Route }): ComponentChildren {
  const text = route.query.get("q") ?? "";
  const begun = useMemo(() => Date.now(), [text]);
  const filter = useMemo(() => readFilter(text, begun), [text]);
  const questions = useMemo(() => new Questions(filter.condition, { name: ownName(), groups: ownGroups() }), [filter.condition, ownName()]);
  const inbox = useStore(questions.inbox);
  const now = useNow(5000);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [held, setHeld] = useState<Interrupt | undefined>(undefined); // what is open stays open when it leaves the list
  const [dialog, setDialog] = useState<{ name: "BulkDialog" | "AssignDialog" | "LaterDialog"; questions: readonly Interrupt[] } | undefined>(undefined);
  const dialogs = useLater(dialog !== undefined, () => import("./dialogs"));
  const hidden = useStore(putOff);
  const input = useRef<HTMLInputElement>(null);
  const [threadId, interruptId] = route.path;

  useEffect(() => {
    questions.onChange = (q) => setHeld((h) => (h?.interruptId === q.interruptId && h?.threadId === q.threadId ? q : h));
    questions.start();
    return () => questions.stop();
  }, [questions]);

  const matches = (q: Interrupt): boolean =>
    isHidden(q, now) === filter.isLater &&
    (!filter.isLate || readTime(q.dueTime) <= now) &&
    (filter.words.length === 0 || filter.words.every((w) => `${titleOf(q)} ${q.graph} ${q.node} ${q.threadId} ${q.people?.groups?.join(" ")} ${q.assignees?.join(" ")}`.toLowerCase().includes(w)));
  const countHidden = Object.values(hidden).filter((until) => until > now).length;
  const isSifted = filter.words.length > 0 || filter.isLate || countHidden > 0;
  const rows = makeRows(isSifted ? { ...inbox, counts: {} } : inbox, matches, (section) => questions.loadMore(section).catch(noteError));
  const list = rows.flatMap((r) => (r.kind === "question" ? [r.question] : []));
  const listed = list.find((q) => q.interruptId === interruptId && q.threadId === threadId);
  const isAddressed = interruptId !== undefined;
  const open = isAddressed ? (held?.interruptId === interruptId ? held : listed) : matchMedia("(min-width: 760px)").matches ? list[0] : undefined;
  const at = open ? list.findIndex((q) => q.interruptId === open.interruptId) : -1;

  useEffect(() => {
    if (!isAddressed || held?.interruptId === interruptId) return;
    if (listed) return setHeld(listed);
    const closing = new AbortController();
    fetchQuestion(threadId!, interruptId, closing.signal).then(setHeld, (err: unknown) => {
      if (closing.signal.aborted) return;
      noteError(err);
      showProblem("The question can't be opened", err);
    });
    return () => closing.abort();
  }, [threadId, interruptId, listed !== undefined]);

  const select = (q: Interrupt | undefined): void => {
    if (!q) return;
    setHeld(q);
    navigate(addressOf("inbox", [q.threadId!, q.interruptId!], { q: text }), isAddressed);
  };
  const choose = (q: Interrupt): void => {
    const all = new Set(chosen);
    if (!all.delete(q.interruptId!)) all.add(q.interruptId!);
    setChosen(all);
  };
  const type = (value: string): void => navigate(addressOf("inbox", route.path, { q: value }), true);
  const changed = (q: Interrupt): void => {
    setHeld((h) => (h?.interruptId === q.interruptId ? q : h));
    questions.take(q);
  };
  const next = (): void => {
    if (shownRoute.get().path[1] === interruptId) select(list[at + 1] ?? list[at - 1]); // the person may have gone on already
  };
  const chosenOnes = list.filter((q) => chosen.has(q.interruptId!));
  const targets = chosenOnes.length > 0 ? chosenOnes : open ? [open] : [];
  const mayAssign = targets.length > 0 && (targets.every((q) => isAllowed(q, "ASSIGN")) || targets.every((q) => isAllowed(q, "DELEGATE")));
  const chooseAll = (): void => {
    questions.loadAll().then(() => setChosen(new Set(Object.values(questions.inbox.get().sections).flat().filter(matches).map((q) => q.interruptId!))), noteError);
  };
  const Dialog = dialog && dialogs?.[dialog.name];
  const ask = (name: "BulkDialog" | "AssignDialog" | "LaterDialog") => (): void => setDialog({ name, questions: targets });
  const done = (): void => {
    setChosen(new Set());
    if (dialog?.name === "LaterDialog") next();
  };
  useKeys([
    { keys: ["j", "ArrowDown"], about: "next question", run: () => select(list[at + 1]) },
    { keys: ["k", "ArrowUp"], about: "question before", run: () => select(list[at - 1]) },
    { keys: ["x"], about: "choose several", run: () => open && choose(open) },
    ...(mayAssign ? [{ keys: ["a"], about: "assign", run: ask("AssignDialog") }] : []),
    ...(targets.length > 0 ? [{ keys: ["h"], about: "later", run: ask("LaterDialog") }] : []),
    { keys: ["o"], about: "open the thread", run: () => open && navigate(addressOf("threads", [open.threadId!])) },
    { keys: ["/"], about: "filter", run: () => input.current?.focus() },
    ...(chosen.size > 0 ? [{ keys: ["Escape"], about: "choose none", run: () => setChosen(new Set<string>()) }] : []),
  ]);
  return (
    <>
      <section class={"list" + (isAddressed ? " behind" : "")} aria-label="Inbox">
        <header>
          <h1>Inbox</h1>
          <span class="count">{countText(isSifted ? undefined : inbox.counts.all, list.length, inbox.hasMore.others)}</span>
          {countHidden > 0 && !filter.isLater && <a class="faint" href={addressOf("inbox", [], { q: "is:later" })}>{countHidden} later</a>}
        </header>
        <div class="filter">
          <Icon name="search" size={14} />
          <input ref={input} placeholder="Filter: graph, group, due, words" aria-label="Filter" value={text} onInput={(e) => type(e.currentTarget.value)} />
          {text === "" ? <Key of="/" /> : <button type="button" class="icon" aria-label="Clear the filter" onClick={() => type("")}><Icon name="cross" size={13} /></button>}
        </div>
        {(filter.problem || inbox.problem) && <p class="problem" role="alert"><Text of={filter.problem || inbox.problem} /></p>}
        {list.length === 0 && inbox.connection === "live" && !inbox.hasMore.others ? (
          <Empty isFiltered={text !== ""} />
        ) : (
          <QuestionList rows={rows} selected={open?.interruptId ?? ""} chosen={chosen} leaving={inbox.leaving} now={now} select={select} choose={choose} />
        )}
        {chosen.size > 0 && (
          <div class="bulk" role="toolbar" aria-label="Several questions">
            <b>{chosen.size} chosen</b>
            {(chosen.size < list.length || inbox.hasMore.others) && <button type="button" class="ghost" onClick={chooseAll}>All {countText(isSifted ? undefined : inbox.counts.all, list.length, inbox.hasMore.others)}</button>}
            <span class="space" />
            {mayAssign && <button type="button" class="ghost" onClick={ask("AssignDialog")}>Assign…</button>}
            <button type="button" class="main" onClick={ask("BulkDialog")}>Answer…</button>
          </div>
        )}
      </section>
      {Dialog && <Dialog questions={dialog.questions} changed={changed} close={() => setDialog(undefined)} done={done} />}
      {open ? (
        <QuestionView key={open.interruptId} question={open} changed={changed} next={next} assign={mayAssign ? ask("AssignDialog") : undefined} later={ask("LaterDialog")} />
      ) : (
        <section class={"detail blank" + (isAddressed ? "" : " behind")} aria-label="Question" />
      )}
    </>
  );
}

function Empty({ isFiltered }: { isFiltered: boolean }): ComponentChildren {
  return (
    <div class="empty">
      <Icon name="check" size={28} />
      <b>{isFiltered ? "Nothing matches" : "Nothing to answer"}</b>
      <p>{isFiltered ? "Other words, or no filter, may show more." : "Questions appear here as soon as a graph asks."}</p>
    </div>
  );
}

function makeRows(inbox: Inbox, matches: (q: Interrupt) => boolean, load: (section: Section) => void): Row[] {
  const rows: Row[] = [];
  const add = (section: Section, title: string): void => {
    const found = inbox.sections[section].filter(matches);
    if (found.length === 0 && !inbox.hasMore[section]) return;
    rows.push({ kind: "heading", title, count: countText(section === "mine" ? inbox.counts.mine : undefined, found.length, inbox.hasMore[section]) });
    rows.push(...found.map((question) => ({ kind: "question" as const, question })));
    if (inbox.hasMore[section]) rows.push({ kind: "more", load: () => load(section) });
  };
  add("mine", "For you");
  add("others", inbox.sections.mine.length > 0 || inbox.hasMore.mine ? "Others" : "All");
  return rows;
}

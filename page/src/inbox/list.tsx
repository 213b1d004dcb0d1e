// The list of questions. Only the rows that are seen are elements.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Interrupt } from "../api/messages";
import { Icon } from "../ui/icons";
import { Ring } from "../ui/ring";
import { Avatar } from "../ui/people";
import { Text } from "../text/marks";
import { shortName } from "../text/people";
import { formatCount, formatExact, formatSpan, readTime } from "../text/time";
import { titleOf } from "../question/title";
import { describeOutcome } from "../question/outcome";
import { holderOf, levelOf } from "./order";

/** A line of the list. */
export type Row = { kind: "heading"; title: string; count: string } | { kind: "question"; question: Interrupt } | { kind: "more"; load: () => void };

const heights = { heading: 34, question: 62, more: 44 };
const beyond = 400; // pixels that are made beside what is seen

interface Props {
  rows: readonly Row[];
  selected: string;
  chosen: ReadonlySet<string>;
  leaving: ReadonlyMap<string, Interrupt>;
  now: number;
  select: (q: Interrupt) => void;
  choose: (q: Interrupt) => void;
}

export function QuestionList({ rows, selected, ...p }: Props): ComponentChildren {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const tops: number[] = [];
  let height = 0;
  for (const row of rows) {
    tops.push(height);
    height += heights[row.kind];
  }
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const at = rows.findIndex((r) => r.kind === "question" && r.question.interruptId === selected);
  useEffect(() => {
    const element = box.current!;
    if (at < 0) return;
    const [top, bottom] = [tops[at]!, tops[at]! + heights.question];
    const first = rows[at - 1]?.kind === "heading" ? heights.heading : 0;
    if (top - first < element.scrollTop) element.scrollTop = top - first;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [selected]);
  const from = Math.max(0, findRow(tops, view.top - beyond));
  const to = findRow(tops, view.top + view.height + beyond) + 1;
  return (
    <div class="rows" ref={box} role="listbox" aria-label="Questions" tabIndex={0} aria-activedescendant={at >= 0 ? "q-" + selected : undefined}>
      <div style={{ height: height + "px" }}>
        {rows.slice(from, to).map((row, i) => (
          <div class="slot" role="presentation" key={keyOf(row, rows.length)} style={{ top: tops[from + i] + "px", height: heights[row.kind] + "px" }}>
            {row.kind === "heading" ? (
              <div class="group" role="presentation">{row.title}<b>{row.count}</b></div>
            ) : row.kind === "more" ? (
              <More load={row.load} />
            ) : (
              <QuestionRow question={row.question} isSelected={row.question.interruptId === selected} {...p} />
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function keyOf(row: Row, count: number): string {
  return row.kind === "question" ? row.question.interruptId! : row.kind === "heading" ? row.title : `more ${count}`; // anew after each page
}

/** Returns the last row that begins at or before a position. */
function findRow(tops: readonly number[], position: number): number {
  let [low, high] = [0, tops.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Loads more as soon as it is about to be seen. */
function More({ load }: { load: () => void }): ComponentChildren {
  useEffect(load, []);
  return <div class="more" role="presentation">Loading…</div>;
}

function QuestionRow({ question: q, isSelected, chosen, leaving, now, select, choose }: Omit<Props, "rows" | "selected"> & { question: Interrupt; isSelected: boolean }): ComponentChildren {
  const gone = leaving.get(q.interruptId!);
  const isChosen = chosen.has(q.interruptId!);
  const holder = holderOf(q, now);
  const groups = q.people?.groups ?? [];
  const need = q.people?.approvals ?? 1;
  const agreed = (q.votes ?? []).filter((v) => v.agrees).length;
  return (
    <div
      class={"row" + (isSelected ? " on" : "") + (isChosen ? " chosen" : "") + (gone ? " leaving" : "")}
      role="option"
      id={"q-" + q.interruptId}
      aria-selected={isSelected}
      onClick={(e) => (e.metaKey || e.ctrlKey ? choose(q) : select(q))}
    >
      <Level question={q} isChosen={isChosen} choose={() => choose(q)} />
      <div class="lines">
        <div class="l1"><span dir="auto"><Text of={titleOf(q)} /></span><Due at={readTime(q.dueTime)} asked={readTime(q.createTime)} now={now} /></div>
        <div class="l2">
          {gone ? (
            <span class="outcome">{describeOutcome(gone)}</span>
          ) : (
            <>
              <span class="graph"><Text of={q.graph ?? ""} /></span>
              <span class="thread"><Text of={q.threadId ?? ""} /></span>
              {need > 1 && <span class="quorum"><Ring part={agreed / need} />{agreed} of {need}</span>}
              <span class="space" />
              {holder ? <><Avatar principal={holder} size={18} /><span class="sr">taken by {shortName(holder)}</span></> : groups.length > 0 && <span class="for"><Icon name="group" size={13} /><Text of={groups[0]! + (groups.length > 1 ? ` +${groups.length - 1}` : "")} /></span>}
            </>
          )}
        </div>
      </div>
    </div>
  );
}

/** Shows how urgent a question is, and whether it is chosen. */
function Level({ question, isChosen, choose }: { question: Interrupt; isChosen: boolean; choose: () => void }): ComponentChildren {
  const level = levelOf(question);
  const words = ["urgent", "high", "normal", "low"][level]!;
  return (
    <span class={`level level-${level}`} title={`${words} priority; click to choose several`} onClick={(e) => { e.stopPropagation(); choose(); }}>
      {isChosen ? <Icon name="check" size={14} /> : (
        <svg width="14" height="14" viewBox="0 0 14 14" role="img" aria-label={`${words} priority`}>
          {[0, 1, 2].map((bar) => <rect class={bar < 3 - level || level === 0 ? "full" : ""} x={1 + bar * 4.5} y={9 - bar * 3.5} width="3" height={4 + bar * 3.5} rx="1" />)}
        </svg>
      )}
    </span>
  );
}

const soon = 20 * 60e3;

/** Says when the next step comes, or for how long the question has been open. */
export function Due({ at, asked, now }: { at: number; asked: number; now: number }): ComponentChildren {
  if (Number.isNaN(at)) return <span class="due" title={"asked " + formatExact(asked)}>{formatSpan(now - asked)}</span>;
  if (at <= now) return <span class="due late" title={formatExact(at)}>{formatSpan(now - at)} late</span>;
  return <span class={at - now < soon ? "due soon" : "due"} title={formatExact(at)}>in {formatSpan(at - now)}</span>;
}

export function countText(n: number | undefined, loaded: number, hasMore: boolean): string {
  return n !== undefined ? formatCount(n) : formatCount(loaded) + (hasMore ? "+" : "");
}

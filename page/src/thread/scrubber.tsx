// The checkpoints of a line, to step through.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { StateSnapshot } from "../api/messages";
import { Text } from "../text/marks";
import { formatExact, formatMoment, readTime } from "../text/time";
import { Key } from "../ui/key";
import { idOf, makersOf } from "./history";

const beside = 40; // checkpoints that are made on each side of the chosen one

interface Props {
  line: readonly StateSnapshot[];
  chosen: string;
  choose: (id: string) => void;
  /** What comes after the last checkpoint, "" for nothing. */
  next: string;
  isWaiting: boolean;
  now: number;
}

export function Scrubber({ line, chosen, choose, next, isWaiting, now }: Props): ComponentChildren {
  const at = line.findIndex((s) => idOf(s) === chosen);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const shown = box.current?.querySelector<HTMLElement>('[aria-current="step"]');
    if (shown) box.current!.scrollLeft = shown.offsetLeft - (box.current!.clientWidth - shown.offsetWidth) / 2;
  }, [chosen]);
  const from = Math.max(0, at - beside);
  const to = Math.min(line.length, at + beside + 1);
  const isHead = at === line.length - 1;
  return (
    <footer class="scrub" aria-label="Checkpoints">
      <button type="button" class="icon" aria-label="Earlier checkpoint" disabled={at <= 0} onClick={() => choose(idOf(line[at - 1]))}>‹</button>
      <div class="checkpoints" ref={box} role="group" aria-label="Checkpoints">
        {from > 0 && <span class="gap">{from} earlier</span>}
        {line.slice(from, to).map((s, i) => (
          <button type="button" key={idOf(s)} class={from + i <= at ? "past" : ""} aria-current={from + i === at ? "step" : undefined} title={`${idOf(s)}, ${formatExact(readTime(s.createTime))}`} onClick={() => choose(idOf(s))}>
            <i />
            <b><Text of={makersOf(line, from + i)} /></b>
            <em>{formatMoment(readTime(s.createTime), now)}</em>
          </button>
        ))}
        {to < line.length && <span class="gap">{line.length - to} later</span>}
        {next && to === line.length && <span class="next"><i /><b><Text of={next} /></b><em>{isWaiting ? "waits" : "is next"}</em></span>}
      </div>
      <button type="button" class="icon" aria-label="Later checkpoint" disabled={isHead} onClick={() => choose(idOf(line[at + 1]))}>›</button>
      <span class="about">{isHead ? "newest" : "the past; nothing here changes it"} <Key of="←" /><Key of="→" /></span>
    </footer>
  );
}

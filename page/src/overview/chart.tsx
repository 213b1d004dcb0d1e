// Charts of the overview: what was asked and answered by hour.

import type { ComponentChildren } from "preact";
import type { QuestionCounts } from "../api/messages";
import { formatCount } from "../text/time";

/** What became of questions in one interval. */
export interface Interval {
  begin: number;
  asked: number;
  answered: number;
}

export function readIntervals(begin: number, length: number, counts: readonly QuestionCounts[]): Interval[] {
  return counts.map((c, i) => ({ begin: begin + i * length, asked: Number(c.asked ?? 0), answered: Number(c.answered ?? 0) }));
}

const labelEvery = 6; // hours
const lines = 4;

/** Bars of what was asked, and a line of what was answered. Scales are texts of the page, which stay readable at every width. */
export function HourChart({ intervals }: { intervals: readonly Interval[] }): ComponentChildren {
  const top = roundUp(Math.max(1, ...intervals.map((h) => Math.max(h.asked, h.answered))));
  const width = intervals.length;
  const heightOf = (n: number): number => (n / top) * 100;
  return (
    <figure class="chart">
      <div>
        {Array.from({ length: lines + 1 }, (_, i) => <span style={{ top: (i / lines) * 100 + "%" }}>{formatCount((top / lines) * (lines - i))}</span>)}
        <svg viewBox={`0 0 ${width} 100`} preserveAspectRatio="none" aria-hidden="true">
          {intervals.map((h, i) => (
            <g>
              <title>{`${clockOf(h.begin)}: ${h.asked} asked, ${h.answered} answered`}</title>
              <rect x={i} width={1} height={100} fill="transparent" />
              <rect x={i + 0.2} width={0.6} y={100 - heightOf(h.asked)} height={heightOf(h.asked)} fill="var(--accent)" fill-opacity={0.4} />
            </g>
          ))}
          <Line values={intervals.map((h) => h.answered)} top={top} colour="var(--yes)" />
        </svg>
        {intervals.map((h, i) => new Date(h.begin).getHours() % labelEvery === 0 && <time style={{ left: ((i + 0.5) / width) * 100 + "%" }}>{clockOf(h.begin)}</time>)}
      </div>
      <figcaption class="legend"><span><i class="asked" />asked</span><span><i class="done" />answered</span></figcaption>
      <table class="sr">
        <thead><tr><th>Hour</th><th>Asked</th><th>Answered</th></tr></thead>
        <tbody>{intervals.filter((h) => h.asked + h.answered > 0).map((h) => <tr><th scope="row">{clockOf(h.begin)}</th><td>{h.asked}</td><td>{h.answered}</td></tr>)}</tbody>
      </table>
    </figure>
  );
}

/** A line through values in a chart of that height, 100 units tall and as wide as there are values. */
function Line({ values, top, colour }: { values: readonly number[]; top: number; colour: string }): ComponentChildren {
  const points = values.map((n, i) => `${i + 0.5},${100 - (n / top) * 100}`).join(" ");
  return <polyline points={points} fill="none" stroke={colour} stroke-width={2} stroke-linejoin="round" vector-effect="non-scaling-stroke" />;
}

/** A small line of what was answered by hour. */
export function Trend({ intervals }: { intervals: readonly Interval[] }): ComponentChildren {
  const values = intervals.map((h) => h.answered);
  return (
    <svg width={64} height={18} viewBox={`0 -8 ${values.length} 116`} preserveAspectRatio="none" role="img" aria-label={`answered by hour: ${values.join(", ")}`}>
      <Line values={values} top={Math.max(1, ...values)} colour="var(--accent)" />
    </svg>
  );
}

/** Returns the next number of 4, 8, 20, 40, 80, 200 and so on, which the lines divide. */
function roundUp(n: number): number {
  for (let unit = lines; ; unit *= 10) {
    for (const most of [unit, 2 * unit, 5 * unit]) if (n <= most) return most;
  }
}

function clockOf(at: number): string {
  return new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
}

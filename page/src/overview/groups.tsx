// Who keeps up: what became of the questions of each group.

import type { ComponentChildren } from "preact";
import type { QuestionSeries } from "../api/messages";
import { addressOf } from "../route";
import { Text } from "../text/marks";
import { formatCount, formatSpan, readDuration } from "../text/time";
import { type Interval, Trend } from "./chart";

export interface Group {
  /** Empty for questions of no group, undefined for groups that are counted together. */
  name: string | undefined;
  /** undefined when the server can't count it. */
  open: number | undefined;
  series: QuestionSeries;
  intervals: readonly Interval[];
}

const good = 0.9; // the part in time from which a group keeps up

/** Returns which part of the questions that ended people answered in time; undefined when none ended. */
export function partInTime({ total }: QuestionSeries): number | undefined {
  const [answered, late, defaulted, expired] = [total?.answered, total?.answeredLate, total?.defaulted, total?.expired].map((n) => Number(n ?? 0)) as [number, number, number, number];
  const ended = answered + defaulted + expired;
  return ended === 0 ? undefined : (answered - late) / ended;
}

export function formatPart(part: number | undefined): string {
  return part === undefined ? "–" : Math.floor(part * 1000) / 10 + " %"; // 100 % only when all are
}

export function formatWait(wait: string | undefined): string {
  return wait === undefined ? "–" : formatSpan(readDuration(wait));
}

export function GroupTable({ groups }: { groups: readonly Group[] }): ComponentChildren {
  return (
    <section class="panel-of" aria-label="Who keeps up">
      <h2>Who keeps up</h2>
      {groups.length === 0 ? <p class="faint">Nothing was asked, and no question has ended.</p> : (
        <div class="wide"><table class="table">
          <thead><tr><th>Group</th><th>Open</th><th>Median</th><th>In time</th><th>Late</th><th>Answered</th></tr></thead>
          <tbody>{groups.map((g) => <GroupRow key={g.name} group={g} />)}</tbody>
        </table></div>
      )}
    </section>
  );
}

function GroupRow({ group: { name, open, series, intervals } }: { group: Group }): ComponentChildren {
  const part = partInTime(series);
  const late = Number(series.total?.answeredLate ?? 0);
  const tone = part !== undefined && part < good ? "bad" : "";
  return (
    <tr>
      <td>{name ? <a href={addressOf("inbox", [], { q: `group:${name}` })}><Text of={name} /></a> : name === undefined ? "other groups" : "no group"}</td>
      <td>{open === undefined ? "–" : formatCount(open)}</td>
      <td>{formatWait(series.medianWait)}</td>
      <td><span class={`share ${tone}`}><i style={{ width: (part ?? 0) * 100 + "%" }} /></span>{formatPart(part)}</td>
      <td class={late > 0 ? "bad" : ""}>{formatCount(late)}</td>
      <td><Trend intervals={intervals} /></td>
    </tr>
  );
}

// The tree of checkpoints: a line for each branch, with the checkpoint where it leaves another one.

import type { ComponentChildren } from "preact";
import { Text } from "../text/marks";
import { formatMoment, readTime } from "../text/time";
import { type History, idOf, listBranches, makersOf } from "./history";

export function Branches({ history, chosen, choose, now }: { history: History; chosen: string; choose: (id: string) => void; now: number }): ComponentChildren {
  const head = idOf(history.head);
  return (
    <ul class="branches">
      {listBranches(history).map(({ line, depth }) => {
        const last = line.at(-1)!;
        const from = history.find(line[0]!.parent?.checkpointId ?? "");
        return (
          <li key={idOf(line[0])} style={{ marginInlineStart: depth * 16 + "px" }}>
            <button type="button" class={line.some((s) => idOf(s) === chosen) ? "on" : ""} onClick={() => choose(idOf(last))}>
              <b>{from ? <>from step {from.step ?? 0}</> : "first input"}{idOf(last) === head && <span class="badge">current</span>}</b>
              <span><Text of={makersOf(line, line.length - 1)} /> · {line.length} {line.length === 1 ? "checkpoint" : "checkpoints"} · {formatMoment(readTime(last.createTime), now)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

// The graph of a thread with a run on it.

import type { ComponentChildren } from "preact";
import type { GraphSpec } from "../api/messages";
import { layoutInBackground } from "../drawing/background";
import { iconOf } from "../drawing/icons";
import type { DrawnJoin, DrawnNode } from "../drawing/layout";
import { pathOf } from "../drawing/path";
import { plainText } from "../text/marks";
import { formatSpan } from "../text/time";
import { useLoaded } from "../ui/loaded";
import { edgeKey, joinKey, type NodeState, type Progress } from "./history";

const words: Record<NodeState, string> = { idle: "not reached", due: "is next", runs: "runs", waits: "waits for people", failed: "failed", done: "done" };
const marks: Partial<Record<NodeState, string>> = { done: "M4 8.5l2.5 2.5L12 5.5", failed: "M4.5 4.5l7 7M11.5 4.5l-7 7", waits: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11M8 5v3.2l2 1.3", runs: "M5.5 4v8l6-4z" };

interface Props {
  spec: GraphSpec;
  progress?: Progress;
  durations?: ReadonlyMap<string, number>;
  picked?: string;
  pick?: (node: string) => void;
}

export function Diagram({ spec, progress, durations, picked, pick }: Props): ComponentChildren {
  const { value: drawing, problem } = useLoaded((signal) => layoutInBackground(spec, signal), [spec]);
  if (problem) return <p class="problem" role="alert">{problem}</p>;
  if (!drawing) return null;
  return (
    <svg class="diagram" viewBox={`0 0 ${drawing.width} ${drawing.height}`} width={drawing.width} height={drawing.height} role="group" aria-label={`Graph ${plainText(spec.name ?? "")}`}>
      <defs>
        {["arrow", "arrow-taken"].map((id) => (
          <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 .8 7 4 0 7.2z" /></marker>
        ))}
      </defs>
      {drawing.edges.map((e) => {
        const isTaken = progress?.edges.has(edgeKey(e.from, e.to)) ?? false;
        return (
          <g class={"edge" + (isTaken ? " taken" : "")}>
            <path d={pathOf(e.points)} stroke-dasharray={e.isConditional ? "4 4" : undefined} marker-end={`url(#${isTaken ? "arrow-taken" : "arrow"})`} />
            {e.label && e.labelAt && (
              <>
                <rect x={e.labelAt.x - e.labelAt.width / 2} y={e.labelAt.y - 8} width={e.labelAt.width} height={16} rx={4} />
                <text x={e.labelAt.x} y={e.labelAt.y + 3.5}>{e.label}</text>
              </>
            )}
          </g>
        );
      })}
      {drawing.joins.map((j) => <JoinView join={j} state={progress && (progress.joins.get(joinKey(j.sources, j.to)) ?? "idle")} />)}
      {drawing.nodes.map((n) => (
        <NodeView node={n} state={progress?.nodes.get(n.name)?.state ?? "idle"} runs={progress?.nodes.get(n.name)?.runs ?? 0} isStatic={!progress} duration={durations?.get(n.name)} isPicked={picked === n.name} pick={pick} />
      ))}
    </svg>
  );
}

const joinWords = { idle: "not reached", due: "waits for the others", done: "done" };

/** Shows a join; of a graph without a run the state is undefined. */
function JoinView({ join: j, state }: { join: DrawnJoin; state: keyof typeof joinWords | undefined }): ComponentChildren {
  const about = `join of ${j.sources.map(plainText).join(", ")}${state ? ", " + joinWords[state] : ""}`;
  return <rect class={"join " + (state ?? "")} role="img" aria-label={about} x={j.x - j.width / 2} y={j.y - j.height / 2} width={j.width} height={j.height} rx={j.height / 2} />;
}

interface NodeProps {
  node: DrawnNode;
  state: NodeState;
  runs: number;
  isStatic: boolean;
  duration: number | undefined;
  isPicked: boolean;
  pick: Props["pick"] | undefined;
}

function NodeView({ node: n, state, runs, isStatic, duration, isPicked, pick }: NodeProps): ComponentChildren {
  const place = `translate(${n.x - n.width / 2},${n.y - n.height / 2})`;
  const shown = isStatic ? "plain" : state;
  if (n.kind === "start" || n.kind === "end") {
    return (
      <g class={"node pill " + shown} transform={place}>
        <rect width={n.width} height={n.height} rx={n.height / 2} />
        <text x={n.width / 2} y={n.height / 2 + 4} text-anchor="middle">{n.kind}</text>
      </g>
    );
  }
  const name = n.label;
  const below = state === "waits" ? "waits" : state === "runs" ? "runs" : state === "failed" ? "failed" : duration !== undefined && duration >= 1 && state === "done" ? formatSpan(duration) : "";
  const times = runs > 1 ? `${runs}×` : "";
  const sub = isStatic ? "" : [times, below].filter(Boolean).join(" · ");
  const act = !pick ? { role: "img" as const } : {
    role: "button" as const, tabIndex: 0, "aria-pressed": isPicked, onClick: () => pick(n.name),
    onKeyDown: (e: KeyboardEvent) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      pick(n.name);
    },
  };
  return (
    <g class={`node ${shown}${isPicked ? " picked" : ""}`} transform={place} {...act} aria-label={`${name}${isStatic ? "" : `${sub ? " " + sub : ""}, ${words[state]}`}`}>
      <rect width={n.width} height={n.height} rx={9} />
      <path class="side" d={`M9,0 H4.5 V${n.height} H9 A9,9 0 0 1 0,${n.height - 9} V9 A9,9 0 0 1 9,0Z`} />
      <path class="icon-of" transform="translate(13,13)" d={iconOf(n.kind)} />
      <text class="name" x={36} y={sub ? 18 : 25} aria-hidden="true">{name}{sub && <><tspan font-size="0"> </tspan><tspan class="sub" x={36} y={32}>{sub}</tspan></>}</text>
      {!isStatic && marks[state] && <path class="mark-of" transform={`translate(${n.width - 22},4) scale(.8)`} d={marks[state]!} />}
    </g>
  );
}

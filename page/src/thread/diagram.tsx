// A graph with a run on it. The graphs of nodes open in place.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { GraphSpec } from "../api/messages";
import { layoutInBackground, type OpenGraph } from "../drawing/background";
import { iconOf } from "../drawing/node_icon";
import type { DrawnEdge, DrawnJoin, DrawnNode, Drawing } from "../drawing/layout";
import { pathOf } from "../drawing/path";
import { plainText } from "../text/marks";
import { formatSpan } from "../text/time";
import { useLoaded } from "../ui/loaded";
import { edgeKey, joinKey, type NodeState, placeOf, type Progress, readProgress, type Standing } from "./history";

const words: Record<NodeState, string> = { idle: "not reached", due: "is next", runs: "runs", waits: "waits for people", failed: "failed", done: "done" };
const marks: Partial<Record<NodeState, string>> = { done: "M4 8.5l2.5 2.5L12 5.5", failed: "M4.5 4.5l7 7M11.5 4.5l-7 7", waits: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11M8 5v3.2l2 1.3", runs: "M5.5 4v8l6-4z" };

interface Props {
  spec: GraphSpec;
  /** Where a run stands in the graph; undefined shows the graph alone. */
  run?: Standing;
  /** How long nodes took, by their places. */
  durations?: ReadonlyMap<string, number>;
  picked?: string;
  pick?: (place: string) => void;
  /** The places of nodes whose graphs are open, with commas between. */
  open: string;
  setOpen: (open: string) => void;
}

export function Diagram({ spec, run, open, setOpen, ...more }: Props): ComponentChildren {
  const { value: shown, problem } = useLoaded((signal) => openAndLayout(spec, open, signal), [spec, open]);
  const { value: inner } = useLoaded(async (signal) => (run && shown?.graph.inner.size ? (await import("./subgraphs")).readInnerProgress(shown.graph, run, signal) : undefined), [shown, run]);
  const own = useMemo(() => run && readProgress(spec, run.line, run.isRunning), [spec, run]);
  const toggle = (place: string): void => {
    const places = open.split(",").filter(Boolean);
    setOpen((places.includes(place) ? places.filter((p) => p !== place) : [...places, place]).join(","));
  };
  const problems = problem || shown?.problems.join(" ");
  return (
    <>
      {problems && <p class="problem" role="alert">{plainText(problems)}</p>}
      {shown && (
        <svg class="diagram" viewBox={`0 0 ${shown.drawing.width} ${shown.drawing.height}`} width={shown.drawing.width} height={shown.drawing.height} role="group" aria-label={`Graph ${plainText(spec.name ?? "")}`}>
          <defs>
            {["arrow", "arrow-taken"].map((id) => (
              <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 .8 7 4 0 7.2z" /></marker>
            ))}
          </defs>
          <GraphView drawing={shown.drawing} path={[]} progress={own} inner={inner} toggle={toggle} {...more} />
        </svg>
      )}
    </>
  );
}

interface Shown {
  graph: OpenGraph;
  drawing: Drawing;
  problems: readonly string[];
}

async function openAndLayout(spec: GraphSpec, open: string, signal: AbortSignal): Promise<Shown> {
  const problems: string[] = [];
  const graph = open ? await (await import("./subgraphs")).openGraphs(spec, new Set(open.split(",")), problems, signal) : { spec, inner: new Map() };
  return { graph, drawing: await layoutInBackground(graph, signal), problems };
}

interface GraphProps extends Pick<Props, "durations" | "picked" | "pick"> {
  drawing: Drawing;
  /** The nodes around the graph. */
  path: readonly string[];
  /** How far the run has come in it; undefined when no run is shown. */
  progress: Progress | undefined;
  /** How far it has come in the graphs of nodes, by the places of these, as far as that is known. */
  inner: ReadonlyMap<string, Progress> | undefined;
  toggle: (place: string) => void;
}

function GraphView(graph: GraphProps): ComponentChildren {
  const { drawing, progress } = graph;
  return (
    <>
      {drawing.edges.map((e) => <EdgeView edge={e} isTaken={progress?.edges.has(edgeKey(e.from, e.to)) ?? false} />)}
      {drawing.joins.map((j) => <JoinView join={j} state={progress && (progress.joins.get(joinKey(j.sources, j.to)) ?? "idle")} />)}
      {drawing.nodes.map((n) => (n.kind === "start" || n.kind === "end" ? <PillView key={n.name} node={n} tone={progress ? progress.nodes.get(n.name)?.state ?? "idle" : "plain"} /> : <NodeView key={n.name} node={n} graph={graph} />))}
    </>
  );
}

// An edge or a node whose elements are those of before is not compared: steps through checkpoints change few of hundreds.

function EdgeView({ edge: e, isTaken }: { edge: DrawnEdge; isTaken: boolean }): ComponentChildren {
  return useMemo(() => (
    <g class={"edge" + (isTaken ? " taken" : "")}>
      <path d={pathOf(e.points)} stroke-dasharray={e.isConditional ? "4 4" : undefined} marker-end={`url(#${isTaken ? "arrow-taken" : "arrow"})`} />
      {e.label && e.labelAt && (
        <>
          <rect x={e.labelAt.x - e.labelAt.width / 2} y={e.labelAt.y - 8} width={e.labelAt.width} height={16} rx={4} />
          <text x={e.labelAt.x} y={e.labelAt.y + 3.5}>{e.label}</text>
        </>
      )}
    </g>
  ), [e, isTaken]);
}

const joinWords = { idle: "not reached", due: "waits for the others", done: "done" };

/** Shows a join; of a graph without a run the state is undefined. */
function JoinView({ join: j, state }: { join: DrawnJoin; state: keyof typeof joinWords | undefined }): ComponentChildren {
  const about = `join of ${j.sources.map(plainText).join(", ")}${state ? ", " + joinWords[state] : ""}`;
  return <rect class={"join " + (state ?? "")} role="img" aria-label={about} x={j.x - j.width / 2} y={j.y - j.height / 2} width={j.width} height={j.height} rx={j.height / 2} />;
}

/** Shows where a graph begins or ends. */
function PillView({ node: n, tone }: { node: DrawnNode; tone: string }): ComponentChildren {
  return (
    <g class={"node pill " + tone} transform={cornerOf(n)}>
      <rect width={n.width} height={n.height} rx={n.height / 2} />
      <text x={n.width / 2} y={n.height / 2 + 4} text-anchor="middle">{n.kind}</text>
    </g>
  );
}

function NodeView({ node: n, graph }: { node: DrawnNode; graph: GraphProps }): ComponentChildren {
  const { progress, pick, picked, durations, inner } = graph;
  const path = [...graph.path, n.name];
  const place = placeOf(path);
  const { state = "idle", runs = 0 } = progress?.nodes.get(n.name) ?? {};
  const duration = durations?.get(place);
  const below = state === "waits" || state === "runs" || state === "failed" ? state : duration !== undefined && duration >= 1 && state === "done" ? formatSpan(duration) : "";
  const sub = progress ? [runs > 1 ? `${runs}×` : "", below].filter(Boolean).join(" · ") : "";
  const shown = progress && state;
  const isPicked = picked === place;
  const box = useMemo(() => <NodeBox node={n} state={shown} sub={sub} isPicked={isPicked} press={pick && (() => pick(place))} />, [n, shown, sub, isPicked, pick, place]);
  return (
    <g transform={cornerOf(n)}>
      {box}
      {n.kind === "graph" && (
        <g class="toggle" transform={`translate(${n.width - 3},24)`} {...buttonOf(() => graph.toggle(place))} aria-expanded={n.inner !== undefined} aria-label={`graph of ${n.label}`}>
          <circle r="8" />
          <path d={n.inner ? "M-4 0h8" : "M-4 0h8M0-4v8"} />
        </g>
      )}
      {n.inner && (
        <g transform={`translate(${n.inner.x},${n.inner.y})`} role="group" aria-label={`Graph of ${n.label}`}>
          <GraphView {...graph} drawing={n.inner.drawing} path={path} progress={inner?.get(place)} />
        </g>
      )}
    </g>
  );
}

interface BoxProps {
  node: DrawnNode;
  /** Undefined when no run is shown. */
  state: NodeState | undefined;
  /** What stands below the name. */
  sub: string;
  isPicked: boolean;
  press: (() => void) | undefined;
}

function NodeBox({ node: n, state, sub, isPicked, press }: BoxProps): ComponentChildren {
  const act = press ? { "aria-pressed": isPicked, ...buttonOf(press) } : { role: "img" as const };
  return (
    <g class={`node ${state ?? "plain"}${isPicked ? " picked" : ""}${n.inner ? " open" : ""}`} {...act} aria-label={`${n.label}${state ? `${sub ? " " + sub : ""}, ${words[state]}` : ""}`}>
      <rect width={n.width} height={n.height} rx={9} />
      <path class="side" d={`M9,0 H4.5 V${n.height} H9 A9,9 0 0 1 0,${n.height - 9} V9 A9,9 0 0 1 9,0Z`} />
      <path class="icon-of" transform="translate(13,13)" d={iconOf(n.kind)} />
      <text class="name" x={36} y={sub ? 18 : 25} aria-hidden="true">{n.label}{sub && <><tspan font-size="0"> </tspan><tspan class="sub" x={36} y={32}>{sub}</tspan></>}</text>
      {state && marks[state] && <path class="mark-of" transform={`translate(${n.width - 22},4) scale(.8)`} d={marks[state]!} />}
    </g>
  );
}

function cornerOf(n: DrawnNode): string {
  return `translate(${n.x - n.width / 2},${n.y - n.height / 2})`;
}

/** Returns what makes an element of a drawing a button. */
function buttonOf(press: () => void): { role: "button"; tabindex: number; onClick: () => void; onKeyDown: (e: KeyboardEvent) => void } {
  const onKeyDown = (e: KeyboardEvent): void => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    press();
  };
  return { role: "button", tabindex: 0, onClick: press, onKeyDown };
}

// The checkpoints of a thread as a tree, and how far the graph has come at one of them.

import type { Event, GraphSpec, Interrupt, StateSnapshot } from "../api/messages";

export type NodeState = "idle" | "due" | "runs" | "waits" | "failed" | "done";

/** How far a graph has come. */
export interface Progress {
  nodes: ReadonlyMap<string, { state: NodeState; runs: number }>;
  /** The edges that were taken, as edgeKey names them. */
  edges: ReadonlySet<string>;
  /** Joins that some sources have reached, which wait for the others, and those that all have reached; as joinKey names them. */
  joins: ReadonlyMap<string, "due" | "done">;
}

export function edgeKey(from: string, to: string): string {
  return from + "\n" + to;
}

/** Where a run stands in one graph. */
export interface Standing {
  threadId: string;
  /** The subgraph, as a CheckpointRef has it. */
  namespace: readonly string[];
  /** The checkpoints from the first one to the one that is shown. */
  line: readonly StateSnapshot[];
  isRunning: boolean;
  /** When the next checkpoint of the outermost graph was made. */
  until: string | undefined;
}

/** Returns the place of a node: the names of the nodes around it, and its own. */
export function placeOf(names: readonly string[]): string {
  return names.map(encodeURIComponent).join("/");
}

/** Returns the node of a level of a namespace, which is "node:task" or "node". */
export function nodeOfLevel(level: string): string {
  return level.replace(/:[^:]*$/, "");
}

/** Returns the place that an event is about. */
export function placeOfEvent(e: Event): string {
  return placeOf([...(e.namespace ?? []).map(nodeOfLevel), e.node ?? ""]);
}

export function joinKey(sources: readonly string[], to: string): string {
  return JSON.stringify([...sources, to]);
}

export function idOf(s: StateSnapshot | undefined): string {
  return s?.checkpoint?.checkpointId ?? "";
}

/** The checkpoints of a thread. */
export class History {
  private readonly byId: ReadonlyMap<string, StateSnapshot>;
  private readonly children = new Map<string, StateSnapshot[]>();

  /** newestFirst is the order of ListCheckpoints. */
  constructor(readonly newestFirst: readonly StateSnapshot[]) {
    this.byId = new Map(newestFirst.map((s) => [idOf(s), s]));
    for (const s of newestFirst.toReversed()) {
      const parent = s.parent?.checkpointId ?? "";
      this.children.set(parent, [...(this.children.get(parent) ?? []), s]);
    }
  }

  get head(): StateSnapshot | undefined {
    return this.newestFirst[0];
  }

  find(id: string): StateSnapshot | undefined {
    return this.byId.get(id);
  }

  childrenOf(id: string): readonly StateSnapshot[] {
    return this.children.get(id) ?? [];
  }

  /** Returns the checkpoints that begin a tree: their parents are none, or are not kept any more. */
  roots(): StateSnapshot[] {
    return this.newestFirst.filter((s) => !this.byId.has(s.parent?.checkpointId ?? "")).toReversed();
  }

  /** Returns the checkpoints from the first one to the one with an id. */
  pathTo(id: string): StateSnapshot[] {
    const path: StateSnapshot[] = [];
    for (let s = this.byId.get(id); s && path.length <= this.byId.size; s = this.byId.get(s.parent?.checkpointId ?? "")) path.push(s);
    return path.reverse();
  }

  /** Returns the line of checkpoints on which one stands: its past, and the newest of what came after it. */
  lineThrough(id: string): StateSnapshot[] {
    const headPath = this.pathTo(idOf(this.head));
    if (headPath.some((s) => idOf(s) === id)) return headPath;
    const line = this.pathTo(id);
    for (let next = this.childrenOf(id).at(-1); next && line.length <= this.byId.size; next = this.childrenOf(idOf(next)).at(-1)) line.push(next);
    return line;
  }
}

/** A line of checkpoints, and how many lines it stands beside. */
export interface Branch {
  line: readonly StateSnapshot[];
  depth: number;
}

const mostBranches = 200; // that are shown

/** Returns the branches of the tree: each with the checkpoints that belong to no branch before it. */
export function listBranches(history: History): Branch[] {
  const branches: Branch[] = [];
  const begin = (first: StateSnapshot, depth: number): void => {
    const line = [first];
    branches.push({ line, depth });
    const others: StateSnapshot[] = [];
    for (let children = history.childrenOf(idOf(first)); children.length > 0; children = history.childrenOf(idOf(line.at(-1)))) {
      line.push(children[0]!);
      others.push(...children.slice(1));
      if (line.length > history.newestFirst.length) break;
    }
    for (const o of others) if (branches.length < mostBranches) begin(o, depth + 1);
  };
  for (const root of history.roots()) begin(root, 0);
  return branches;
}

const start = "__start__";
const end = "__end__";

/** Reads how far a graph has come at the last checkpoint of a path; isRunning says that a run works on from there. */
export function readProgress(spec: GraphSpec, path: readonly StateSnapshot[], isRunning: boolean): Progress {
  const nodes = new Map<string, { state: NodeState; runs: number }>();
  const edges = new Set<string>();
  const joins = (spec.edges ?? []).filter((e) => (e.sources ?? []).length > 1).map((e) => new JoinProgress(e.sources!, e.target ?? ""));
  let before: readonly string[] = [];
  for (const [i, s] of path.entries()) {
    const isLast = i === path.length - 1;
    const due = (s.tasks ?? []).map((t) => t.node ?? "");
    const triggered = due.length > 0 ? due : s.next ?? [];
    const reached = isLast && triggered.length === 0 ? [end] : triggered;
    for (const to of reached) for (const from of before) edges.add(edgeKey(from, to));
    for (const j of joins) if (j.step(before, reached)) for (const from of j.sources) edges.add(edgeKey(from, j.to));
    for (const task of s.tasks ?? []) {
      const node = task.node ?? "";
      const runs = nodes.get(node)?.runs ?? 0;
      if (!isLast) nodes.set(node, { state: "done", runs: runs + 1 });
      else nodes.set(node, { state: task.failure ? "failed" : waits(task.interrupts) ? "waits" : task.result ? "done" : isRunning ? "runs" : "due", runs });
    }
    before = s.source === "CHECKPOINT_SOURCE_INPUT" ? [start] : triggered;
    if (s.source === "CHECKPOINT_SOURCE_INPUT") nodes.set(start, { state: "done", runs: 1 });
  }
  const last = path.at(-1);
  const finished = (last?.tasks ?? []).filter((t) => t.result).map((t) => t.node ?? "");
  for (const j of joins) j.step(finished, []);
  if (last && path.length > 1 && (last.tasks ?? []).length === 0 && (last.next ?? []).length === 0) nodes.set(end, { state: "done", runs: 1 });
  return { nodes, edges, joins: new Map(joins.flatMap((j) => (j.state ? [[joinKey(j.sources, j.to), j.state]] : []))) };
}

/** A join while the checkpoints of a path are gone through. */
class JoinProgress {
  private readonly arrived = new Set<string>();
  private isPassed = false;

  constructor(readonly sources: readonly string[], readonly to: string) {}

  get state(): "due" | "done" | undefined {
    return this.arrived.size > 0 ? "due" : this.isPassed ? "done" : undefined;
  }

  /** Takes the nodes that ran, and those that come next. Tells whether the join led to its target. */
  step(ran: readonly string[], next: readonly string[]): boolean {
    for (const node of ran) if (this.sources.includes(node)) this.arrived.add(node);
    if (this.arrived.size < new Set(this.sources).size || !next.includes(this.to)) return false;
    this.arrived.clear();
    return (this.isPassed = true);
  }
}

function waits(questions: readonly Interrupt[] | undefined): boolean {
  return (questions ?? []).some((q) => q.state === "INTERRUPT_STATE_OPEN" || q.state === "INTERRUPT_STATE_ANSWERED");
}

/** Returns the nodes that made a checkpoint, for its name. */
export function makersOf(line: readonly StateSnapshot[], i: number): string {
  const s = line[i]!;
  if (s.source === "CHECKPOINT_SOURCE_INPUT") return "input";
  if (s.source === "CHECKPOINT_SOURCE_UPDATE") return "update";
  const before = line[i - 1];
  const names = [...new Set((before?.tasks ?? []).map((t) => t.node ?? ""))];
  if (names.length === 1 && names[0] === start) return "start";
  return names.join(" + ") || (s.source === "CHECKPOINT_SOURCE_FORK" ? "fork" : `step ${s.step ?? 0}`);
}

// The graphs of nodes that are open in a diagram, and how far a run has come in them.

import { CallError } from "../api/connect";
import type { Graph, GraphSpec, ListCheckpointsResponse, StateSnapshot } from "../api/messages";
import { client } from "../api/session";
import type { OpenGraph } from "../drawing/background";
import { History, idOf, nodeOfLevel, placeOf, type Progress, readProgress, type Standing } from "./history";

/** Reads the graphs of nodes that are open, and of nodes in them. A graph that can't be read stays closed, and problems says why. */
export async function openGraphs(spec: GraphSpec, open: ReadonlySet<string>, problems: string[], signal: AbortSignal, path: readonly string[] = []): Promise<OpenGraph> {
  const inner = new Map<string, OpenGraph>();
  for (const n of spec.nodes ?? []) {
    const at = [...path, n.name ?? ""];
    if (!n.graph || !open.has(placeOf(at))) continue;
    try {
      const found = await client.call<Graph>("RegistryService/GetGraph", { graph: n.graph.graph, version: n.graph.version, view: "GRAPH_VIEW_FULL" }, signal);
      inner.set(n.name ?? "", await openGraphs(found.spec ?? {}, open, problems, signal, at));
    } catch (err) {
      if (!(err instanceof CallError)) throw err;
      problems.push(err.message);
    }
  }
  return { spec, inner };
}

const mostCheckpoints = 500; // of one page; of a longer history the newest ones count

/** Reads how far a run has come in the graphs that are open, by the places of their nodes; nothing for those whose states are not kept. */
export async function readInnerProgress(graph: OpenGraph, at: Standing, signal: AbortSignal, path: readonly string[] = []): Promise<ReadonlyMap<string, Progress>> {
  const found = new Map<string, Progress>();
  for (const [name, inner] of graph.inner) {
    const standing = await enterNode(graph.spec, name, at, signal);
    if (!standing) continue;
    found.set(placeOf([...path, name]), readProgress(inner.spec, standing.line, standing.isRunning));
    for (const [place, progress] of await readInnerProgress(inner, standing, signal, [...path, name])) found.set(place, progress);
  }
  return found;
}

/** Returns where a run stands in the graph of a node, in the newest of its tasks; undefined where no states are kept. */
async function enterNode(spec: GraphSpec, name: string, at: Standing, signal: AbortSignal): Promise<Standing | undefined> {
  const task = at.line.flatMap((s) => s.tasks ?? []).findLast((t) => t.node === name);
  const persistence = spec.nodes?.find((n) => n.name === name)?.graph?.persistence;
  if (persistence === "SUBGRAPH_PERSISTENCE_DISABLED") return undefined;
  if (!task) return { ...at, line: [], isRunning: false };
  const isShared = persistence === "SUBGRAPH_PERSISTENCE_PERSIST"; // by all tasks of the node
  const namespace = isShared ? [...at.namespace.map(nodeOfLevel), name] : [...at.namespace, `${name}:${task.taskId}`];
  const { checkpoints = [] } = await client.call<ListCheckpointsResponse>("ThreadService/ListCheckpoints", { threadId: at.threadId, namespace, pageSize: mostCheckpoints }, signal);
  const until = isShared ? at.until : undefined;
  const history = new History(until === undefined ? checkpoints : checkpoints.filter((s) => isBefore(s, until)));
  return { ...at, namespace, line: history.lineThrough(idOf(history.head)), isRunning: at.isRunning && !task.result && !task.failure };
}

/** Compares to the nanosecond; stamps have no, three, six or nine digits after the second. */
function isBefore(s: StateSnapshot, time: string): boolean {
  const padded = (stamp: string): string => stamp.replace(/(?:\.(\d+))?Z$/, (_, digits = "") => "." + String(digits).padEnd(9, "0"));
  return padded(s.createTime ?? "") < padded(time);
}

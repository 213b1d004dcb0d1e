/** States of the server as LangGraph.js shows them. */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { type Interrupt, InterruptState } from "../_gen/graphd/v1/interrupt_pb.js";
import type { CheckpointRef, Payload } from "../_gen/graphd/v1/payload_pb.js";
import {
  CheckpointSource,
  type SnapshotTask,
  type StateSnapshot as WireSnapshot,
} from "../_gen/graphd/v1/thread_pb.js";
import { storedError } from "../calls/index.js";
import { payloadText } from "../codec/index.js";
import { formatNamespace, publicName } from "../names/index.js";
import type { RunConfig } from "./config.js";
import type { GraphShape } from "./graph_shape.js";
import { fromLabels } from "./labels.js";
import { type ShownInterrupt, showQuestions } from "./shown_interrupt.js";
import { isObject } from "./stream_modes.js";

/** The config that names a checkpoint, or a namespace of a thread. */
export type PlaceConfig = { configurable: Record<string, any> };

export type SnapshotMetadata = {
  source?: "input" | "loop" | "update" | "fork";
  step?: number;
  parents?: Record<string, string>;
  [key: string]: unknown;
};

export type TaskSnapshot = {
  id: string;
  name: string;
  path: unknown[];
  error?: { name: string; message: string };
  interrupts: ShownInterrupt[];
  state?: PlaceConfig | StateSnapshot;
  result?: unknown;
};

export type StateSnapshot = {
  values: any;
  next: string[];
  config: PlaceConfig;
  metadata?: SnapshotMetadata;
  createdAt?: string;
  parentConfig?: PlaceConfig;
  tasks: TaskSnapshot[];
};

const SOURCES: Record<number, "input" | "loop" | "update" | "fork"> = {
  [CheckpointSource.INPUT]: "input",
  [CheckpointSource.LOOP]: "loop",
  [CheckpointSource.UPDATE]: "update",
  [CheckpointSource.FORK]: "fork",
};

/** What made a checkpoint, in a word. */
export function sourceOf(source: CheckpointSource): "input" | "loop" | "update" | "fork" {
  return SOURCES[source] ?? "loop";
}

/** A state, as the program reads it; `undefined` when the payload holds none. */
export function readState(shape: GraphShape | undefined, payload: Payload | undefined): unknown {
  const text = payloadText(payload);
  if (text === undefined) return undefined;
  return shape === undefined ? JSON.parse(text) : shape.decodeState(text);
}

/** The config that names a checkpoint. */
export function configOf(config: RunConfig, checkpoint: CheckpointRef): PlaceConfig {
  return {
    configurable: {
      thread_id: config.configurable?.thread_id,
      checkpoint_ns: formatNamespace(checkpoint.namespace),
      checkpoint_id: checkpoint.checkpointId,
    },
  };
}

/** The config that names a namespace of a thread. */
export function namespaceConfig(config: RunConfig, namespace: string): PlaceConfig {
  return { configurable: { thread_id: config.configurable?.thread_id, checkpoint_ns: namespace } };
}

type DueTask = { node: string; taskId: string };

/** Where the subgraph of a task keeps its state: empty if it keeps none, `undefined` if none is known. */
export function nestedNamespace(
  shape: GraphShape | undefined,
  task: DueTask,
  levels: readonly string[],
): string | undefined {
  const persistence = shape?.nestedPersistence(publicName(task.node));
  if (persistence === undefined) return undefined;
  if (persistence === "none") return "";
  const level = persistence === "own" ? task.node : `${task.node}:${task.taskId}`;
  return formatNamespace([...levels, level]);
}

export function formatTime(time: Timestamp | undefined): string {
  return (time === undefined ? new Date(0) : timestampDate(time)).toISOString();
}

/** The empty state of a thread that has none. */
export function emptySnapshot(config: RunConfig): StateSnapshot {
  return { values: {}, next: [], config: { configurable: { ...config.configurable } }, tasks: [] };
}

/** Reads the snapshots of one thread. */
export class SnapshotReader {
  constructor(
    private readonly root: GraphShape,
    private readonly config: RunConfig,
    private readonly subgraphs = false,
  ) {}

  /** One state, with those of its subgraphs as far as they are there. */
  read(state: WireSnapshot, parents: Readonly<Record<string, string>> = {}): StateSnapshot {
    const { checkpoint } = state;
    const shape = this.root.findGraph(checkpoint?.namespace ?? []);
    if (checkpoint === undefined)
      return { ...emptySnapshot(this.config), values: readState(shape, state.values) ?? {} };
    const namespace = formatNamespace(checkpoint.namespace);
    const here = { ...parents, [namespace]: checkpoint.checkpointId };
    const config = configOf(this.config, checkpoint);
    if (namespace !== "") config.configurable.checkpoint_map = here;
    return {
      values: readState(shape, state.values) ?? {},
      next: state.next.map(publicName),
      config,
      metadata: {
        ...fromLabels(state.metadata),
        source: sourceOf(state.source),
        step: state.step,
        parents: { ...parents },
        ...(state.runId ? { run_id: state.runId } : {}),
      },
      createdAt: formatTime(state.createTime),
      ...(state.parent === undefined ? {} : { parentConfig: configOf(this.config, state.parent) }),
      tasks: state.tasks.map((task) => this.readTask(shape, task, state, here)),
    };
  }

  private readTask(
    shape: GraphShape | undefined,
    task: SnapshotTask,
    around: WireSnapshot,
    parents: Readonly<Record<string, string>>,
  ): TaskSnapshot {
    const error = storedError(task.failure);
    const state = this.readNested(shape, task, around, parents);
    const result = readResult(shape, task.result);
    return {
      id: task.taskId,
      name: publicName(task.node),
      path: pathOf(task, around.tasks),
      ...(error === undefined ? {} : { error }),
      interrupts: showQuestions(currentInterrupts(task)),
      ...(state === undefined ? {} : { state }),
      ...(result === undefined ? {} : { result }),
    };
  }

  private readNested(
    shape: GraphShape | undefined,
    task: SnapshotTask,
    around: WireSnapshot,
    parents: Readonly<Record<string, string>>,
  ): PlaceConfig | StateSnapshot | undefined {
    if (task.state?.checkpoint !== undefined) return this.read(task.state, parents);
    const nested = nestedNamespace(shape, task, around.checkpoint?.namespace ?? []);
    const namespace = nested ?? formatNamespace(task.namespace);
    if (namespace === "") return undefined;
    const config = namespaceConfig(this.config, namespace);
    return this.subgraphs ? { values: {}, next: [], config, tasks: [] } : config;
  }
}

/** What made a task of a superstep, in the notation of LangGraph. */
function pathOf(task: SnapshotTask, tasks: readonly SnapshotTask[]): unknown[] {
  if (task.sendIndex !== undefined) return ["__pregel_push", task.sendIndex, false];
  const handled = tasks.find((one) => one.taskId === task.handledTaskId);
  if (handled !== undefined) return [...pathOf(handled, []), "node_error_handler", false];
  return ["__pregel_pull", publicName(task.node)];
}

const WAITING = new Set([InterruptState.OPEN, InterruptState.ANSWERED]);

/** The questions that a task waits for; of one that has its answers, what was asked last in each of its scopes. */
function currentInterrupts(task: SnapshotTask): Interrupt[] {
  const waiting = task.interrupts.filter((one) => WAITING.has(one.state));
  if (waiting.length > 0) return waiting;
  return [...new Map(task.interrupts.map((one) => [`${one.taskId} ${one.scope}`, one])).values()];
}

/** What a task has written; `undefined` when it wrote nothing. */
function readResult(shape: GraphShape | undefined, payload: Payload | undefined): unknown {
  const value = readState(shape, payload);
  if (value === undefined || value === null || (shape?.isRoot !== true && isEmpty(value))) return undefined;
  return Array.isArray(value) && shape?.isRoot !== true ? combineWrites(value) : value;
}

/** Several updates of one task as one, in the notation of LangGraph. */
export function combineWrites(writes: readonly unknown[]): Record<string, unknown> {
  const found = new Map<string, unknown[]>();
  for (const write of writes.filter(isObject)) {
    for (const [key, value] of Object.entries(write)) found.set(key, [...(found.get(key) ?? []), value]);
  }
  return Object.fromEntries(
    [...found].map(([key, all]) => [key, all.length === 1 ? all[0] : { $writes: all }]),
  );
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

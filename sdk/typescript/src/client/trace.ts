/** The modes "tasks", "checkpoints" and "debug". */
import {
  type CheckpointSaved,
  type DueTask,
  type Event,
  type TaskChange,
  TaskChange_Phase,
} from "../_gen/graphd/v1/event_pb.js";
import type { Interrupt } from "../_gen/graphd/v1/interrupt_pb.js";
import type { CheckpointRef } from "../_gen/graphd/v1/payload_pb.js";
import { storedError } from "../calls/index.js";
import { payloadText } from "../codec/index.js";
import {
  findLevels,
  formatNamespace,
  type Levels,
  nodeOfLevel,
  publicName,
  taskOfLevel,
} from "../names/index.js";
import type { RunConfig } from "./config.js";
import type { GraphShape } from "./graph_shape.js";
import { fromLabels, toLabels } from "./labels.js";
import { isQuestion, type ShownInterrupt, showInterrupt } from "./shown_interrupt.js";
import {
  combineWrites,
  configOf,
  formatTime,
  namespaceConfig,
  nestedNamespace,
  readState,
  type StateSnapshot,
  sourceOf,
  type TaskSnapshot,
} from "./snapshots.js";
import { type StreamItem, type StreamMode, selectKeys } from "./stream_modes.js";

type Kind = "task" | "task_result" | "task_restart" | "checkpoint";
type Waiting = { levels: Levels; task: TaskSnapshot };

/** Shows what a run does, task by task and checkpoint by checkpoint. */
export class Trace {
  /** The newest checkpoint of each graph, by its namespace. */
  private readonly current = new Map<string, { levels: Levels; id: string }>();
  /** Tasks that have asked before the call. */
  private readonly waiting = new Map<string, Waiting>();
  /** Tasks with a graph that has asked before the call. */
  private readonly askedBefore = new Set<string>();
  private readonly progress = new Map<string, TaskSnapshot>();
  private readonly last = new Map<string, Event>();
  private readonly results = new Map<string, unknown>();
  private readonly cached = new Set<string>();
  private readonly questions = new Map<string, Interrupt>();
  /** Where the call began, by namespace. */
  private readonly beforeCall = new Map<string, CheckpointRef | undefined>();
  private isContinued = false;
  private interrupted: { levels: Levels; event: Event }[] = [];

  constructor(
    private readonly modes: ReadonlySet<StreamMode>,
    private readonly root: GraphShape,
    private readonly config: RunConfig,
    private readonly options: {
      subgraphs: boolean;
      stored: boolean;
      keysOf(levels: Levels): string | readonly string[] | undefined;
    },
  ) {}

  /** Remembers what a task has written, to show it when the task has ended. */
  recordUpdate(event: Event, value: unknown, cached: boolean): void {
    this.results.set(event.taskId, value);
    if (cached) this.cached.add(event.taskId);
  }

  *taskItems(levels: Levels, event: Event, change: TaskChange): Generator<StreamItem> {
    if (change.phase === TaskChange_Phase.SCHEDULED) this.last.set(formatNamespace(levels), event);
    else this.waiting.delete(event.taskId);
    if (!this.shows("tasks", "debug")) return;
    const base = { id: event.taskId, name: publicName(event.node) };
    switch (change.phase) {
      case TaskChange_Phase.SCHEDULED: {
        const input = this.readInput(levels, change);
        yield* this.itemsOf(levels, event, "task", {
          ...base,
          input,
          triggers: change.triggers,
          interrupts: [],
        });
        return;
      }
      case TaskChange_Phase.SUCCEEDED:
        if (this.cached.has(event.taskId)) return;
        yield* this.itemsOf(levels, event, "task_result", {
          ...base,
          error: null,
          result: this.takeResult(levels, event),
          interrupts: [],
        });
        return;
      case TaskChange_Phase.FAILED: {
        const error = storedError(change.failure);
        yield* this.itemsOf(levels, event, "task_result", { ...base, error, result: {}, interrupts: [] });
        return;
      }
      case TaskChange_Phase.INTERRUPTED:
        this.interrupted.push({ levels, event });
        yield* this.interruptedItems();
        return;
      case TaskChange_Phase.RESTARTED:
        if (!this.shows("debug")) return;
        yield this.debugItem(levels, event, "task_restart", { ...base, attempt: event.attempt });
    }
  }

  /** Shows the tasks that wait for these questions, if that is not done. */
  *questionItems(interrupts: readonly Interrupt[]): Generator<StreamItem> {
    for (const one of interrupts.filter(isQuestion)) this.questions.set(one.interruptId, one);
    yield* this.interruptedItems();
  }

  /** Shows, at the end of a call, the tasks that wait for these questions of earlier calls. */
  *openQuestionItems(interrupts: readonly Interrupt[]): Generator<StreamItem> {
    this.askedBefore.clear();
    yield* this.questionItems(interrupts);
    yield* this.waitingItems();
  }

  /** Forgets questions that are not open any more. */
  forgetQuestions(interrupts: readonly Interrupt[]): void {
    for (const { interruptId } of interrupts) this.questions.delete(interruptId);
  }

  /** Shows a checkpoint: one that was stored, or the one at which a stopped graph goes on. */
  *checkpointItems(levels: Levels, event: Event, saved: CheckpointSaved): Generator<StreamItem> {
    if (!this.options.stored || !this.shows("checkpoints", "debug") || saved.checkpoint === undefined) return;
    this.current.set(formatNamespace(levels), { levels, id: saved.checkpoint.checkpointId });
    const shape = this.root.findGraph(levels);
    const parent = this.parentOf(levels, saved);
    const data = {
      config: configOf(this.config, saved.checkpoint),
      parentConfig: parent && configOf(this.config, parent),
      values: readState(shape, saved.values) ?? {},
      metadata: {
        ...fromLabels(toLabels(this.config)),
        source: sourceOf(saved.source),
        step: event.step,
        parents: this.parentsOf(levels),
      },
      next: saved.next.map((task) => publicName(task.node)),
      tasks: saved.next.map((task) => this.describeTask(shape, levels, task)),
    };
    if (this.shows("checkpoints")) yield { mode: "checkpoints", levels, data };
    if (this.shows("debug")) yield this.debugItem(levels, event, "checkpoint", data);
  }

  /** The checkpoint before; of a call that shows as one checkpoint in history, the one before the call. */
  private parentOf(levels: Levels, { checkpoint, parent }: CheckpointSaved): CheckpointRef | undefined {
    if (this.config.durability !== "exit") return parent;
    const namespace = formatNamespace(levels);
    if (this.beforeCall.has(namespace)) return this.beforeCall.get(namespace);
    this.beforeCall.set(namespace, this.isContinued ? checkpoint : parent);
    return parent;
  }

  /** Takes what is known of the tasks of a superstep before the call goes on with it. */
  setProgress(tasks: readonly TaskSnapshot[], levels: Levels = []): void {
    this.isContinued = true;
    for (const task of tasks) {
      this.progress.set(task.id, task);
      const nested = task.state !== undefined && "values" in task.state ? task.state : undefined;
      if (task.interrupts.length > 0) {
        this.waiting.set(task.id, { levels, task });
        if (task.state !== undefined) this.askedBefore.add(task.id);
      }
      if (nested !== undefined) this.setProgress(nested.tasks, this.setPosition(nested));
    }
  }

  private setPosition(state: StateSnapshot): Levels {
    const { checkpoint_ns: namespace = "", checkpoint_id: id } = state.config.configurable;
    const levels = String(namespace).split("|");
    if (id) this.current.set(String(namespace), { levels, id });
    return levels;
  }

  private shows(...modes: StreamMode[]): boolean {
    return modes.some((mode) => this.modes.has(mode));
  }

  /** The tasks that wait since an earlier call, inner ones first. LangGraph runs them again. */
  private *waitingItems(): Generator<StreamItem> {
    for (const { levels, task } of [...this.waiting.values()].reverse()) {
      if (levels.length > 0 && !this.options.subgraphs) continue;
      const interrupts = task.interrupts.filter(({ id }) => this.questions.has(id));
      if (interrupts.length === 0) continue;
      const data = { id: task.id, name: task.name, error: null, result: {}, interrupts };
      const last = this.last.get(formatNamespace(levels));
      if (this.shows("tasks")) yield { mode: "tasks", levels, data };
      if (this.shows("debug") && last !== undefined) yield this.debugItem(levels, last, "task_result", data);
    }
  }

  /** The event of a task comes before its questions, that of a subgraph's node after them. */
  private *interruptedItems(): Generator<StreamItem> {
    for (const one of [...this.interrupted]) {
      const { levels, event } = one;
      // The graph in it may wait for questions of earlier calls, too.
      if (this.askedBefore.has(event.taskId)) continue;
      const interrupts = [...this.questions.values()]
        .filter((asked) => asks(event, asked))
        .map(showInterrupt);
      if (interrupts.length === 0) continue;
      this.interrupted = this.interrupted.filter((other) => other !== one);
      const data = { id: event.taskId, name: publicName(event.node), error: null, result: {}, interrupts };
      yield* this.itemsOf(levels, event, "task_result", data);
    }
  }

  private takeResult(levels: Levels, event: Event): unknown {
    const result = this.results.get(event.taskId);
    this.results.delete(event.taskId);
    if (Array.isArray(result) && this.root.findGraph(levels)?.isRoot !== true) return combineWrites(result);
    return result ?? {};
  }

  private readInput(levels: Levels, change: TaskChange): unknown {
    const text = payloadText(change.value);
    if (text === undefined) return undefined;
    return (this.root.findGraph(levels) ?? this.root).decodeInput(text);
  }

  private *itemsOf(
    levels: Levels,
    event: Event,
    kind: Kind,
    data: Record<string, unknown>,
  ): Generator<StreamItem> {
    if (this.shows("tasks")) yield { mode: "tasks", levels, data };
    if (this.shows("debug")) yield this.debugItem(levels, event, kind, data);
  }

  private debugItem(levels: Levels, event: Event, type: Kind, payload: unknown): StreamItem {
    return {
      mode: "debug",
      levels,
      data: { step: event.step, type, timestamp: formatTime(event.time), payload },
    };
  }

  /** The checkpoints of the graphs around a graph, by namespace. */
  private parentsOf(levels: Levels): Record<string, string> {
    const known = [...this.current.values()].map((one) => one.levels);
    const around = levels.map((_, depth) => formatNamespace(findLevels(levels.slice(0, depth), known)));
    const found = around.map((namespace) => [namespace, this.current.get(namespace)?.id] as const);
    return Object.fromEntries(found.filter((one): one is readonly [string, string] => one[1] !== undefined));
  }

  /** A due task, with what is known of it since an earlier call. */
  private describeTask(
    shape: GraphShape | undefined,
    levels: Levels,
    task: DueTask,
  ): Record<string, unknown> {
    const before = this.progress.get(task.taskId);
    const below = nestedNamespace(shape, task, levels);
    const state = below ? { state: namespaceConfig(this.config, below) } : {};
    const shown = { id: task.taskId, name: publicName(task.node), ...state };
    if (before?.error !== undefined) return { ...shown, error: before.error };
    const result = selectKeys(before?.result, this.options.keysOf(levels));
    const interrupts: ShownInterrupt[] = before?.interrupts ?? [];
    return { ...shown, ...(result === undefined ? {} : { result }), interrupts };
  }
}

/** The question is one of the event's task, or of a graph that runs in it. */
function asks(event: Event, question: Interrupt): boolean {
  if (question.taskId === event.taskId) return true;
  return (question.checkpoint?.namespace ?? []).some((level) => {
    const task = taskOfLevel(level);
    return task === "" ? nodeOfLevel(level) === event.node : task === event.taskId;
  });
}

/** Events of the server as the items of LangGraph.js's streams. */
import {
  type Event,
  type NodeUpdate,
  type StateValues,
  TaskChange_Phase,
} from "../_gen/graphd/v1/event_pb.js";
import type { Interrupt } from "../_gen/graphd/v1/interrupt_pb.js";
import { fromPayload, payloadText } from "../codec/index.js";
import { INTERRUPT } from "../constants.js";
import { findLevels, formatNamespace, type Levels, publicLevels, publicName } from "../names/index.js";
import type { RunConfig } from "./config.js";
import type { GraphShape } from "./graph_shape.js";
import { MessageStream } from "./message_stream.js";
import { isQuestion } from "./shown_interrupt.js";
import { type QuestionGroup, ShownQuestions } from "./shown_questions.js";
import { readState, type TaskSnapshot } from "./snapshots.js";
import { isObject, type StreamItem, type StreamMode, selectKeys } from "./stream_modes.js";
import { Trace } from "./trace.js";

export type TranslatorOptions = {
  modes: readonly StreamMode[];
  shape: GraphShape;
  config: RunConfig;
  outputKeys?: string | readonly string[] | undefined;
  /** The keys of the input; left out for a call that goes on with a state, and shows it. */
  inputKeys?: readonly string[] | undefined;
  subgraphs: boolean;
  /** The run keeps its checkpoints. */
  stored: boolean;
};

/** Turns the events of one call into items, in order. */
export class Translator {
  private readonly modes: ReadonlySet<StreamMode>;
  private readonly trace: Trace;
  private readonly messages: MessageStream;
  private readonly questions: ShownQuestions;
  /** Graphs whose states are in checkpoints, and graphs inside that have come to questions. */
  private readonly stored = new Set<string>();
  private readonly asking = new Set<string>();
  /** The graphs of the events so far. */
  private readonly shown = new Map<string, Levels>();
  private readonly touched = new Map<string, Set<string>>();
  private readonly lastShown = new Map<string, string>();
  private held: StreamItem[] = [];

  constructor(private readonly options: TranslatorOptions) {
    const { shape, config, subgraphs, stored } = options;
    this.modes = new Set(options.modes);
    const keysOf = (levels: Levels) => this.keysOf(levels);
    this.trace = new Trace(this.modes, shape, config, { subgraphs, stored, keysOf });
    this.messages = new MessageStream(shape, config);
    this.questions = new ShownQuestions(subgraphs);
  }

  /**
   * The items that an event makes, and those that it shows to be complete. A state of the root without a
   * checkpoint ends a call that waits: the questions that wait since an earlier call come before it.
   */
  translate(event: Event): StreamItem[] {
    const items = [...this.eventItems(event)].filter((item) => this.isShownHere(item));
    const ready = this.held.length > 0 && (items.length > 0 || showsProgress(event)) ? this.heldItems() : [];
    if (event.kind.case === "values" && isPartial(publicLevels(event.namespace), event.kind.value)) {
      this.held = items;
      return ready;
    }
    return [...ready, ...items];
  }

  /** The last state of a call that waits. */
  heldItems(): StreamItem[] {
    return this.held.splice(0);
  }

  /** Tasks that go on are shown with what is known of them already. */
  get wantsProgress(): boolean {
    return ["checkpoints", "debug", "tasks"].some((mode) => this.modes.has(mode as StreamMode));
  }

  setProgress(tasks: readonly TaskSnapshot[]): void {
    this.trace.setProgress(tasks);
  }

  /** All these questions were shown by this call. */
  hasRaised(ids: readonly string[]): boolean {
    return this.questions.hasRaised(ids);
  }

  /** At the end of a stream: the questions that wait since an earlier call, and new ones around theirs. */
  openQuestionItems(waiting: readonly Interrupt[]): StreamItem[] {
    const groups = this.questions
      .groupsAtEnd(waiting)
      .map(({ levels, asked }) => ({ levels: findLevels(levels, this.shown.values()), asked }));
    return [...this.trace.openQuestionItems(waiting), ...this.groupItems(groups)];
  }

  /** Shows that a run has stopped at breakpoints; a question beside them shows in place of that. */
  *breakpointItems(open: readonly string[]): Generator<StreamItem> {
    if (open.length === 0 || this.questions.hasAsked(open)) return;
    for (const mode of ["updates", "values"] as const) {
      if (this.modes.has(mode)) yield { mode, levels: [], data: { [INTERRUPT]: [] } };
    }
  }

  /** Custom events show wherever they happen, all else of subgraphs only on demand. */
  private isShownHere(item: StreamItem): boolean {
    return this.options.subgraphs || item.levels.length === 0 || item.mode === "custom";
  }

  private *eventItems(event: Event): Generator<StreamItem> {
    const levels = publicLevels(event.namespace);
    this.shown.set(formatNamespace(levels), levels);
    const { kind } = event;
    switch (kind.case) {
      case "values":
        yield* this.stateItems(levels, kind.value);
        break;
      case "update":
        yield* this.updateItems(levels, event, kind.value);
        break;
      case "interrupt":
        if (levels.length > 0 && kind.value.interrupts.some(isQuestion))
          this.asking.add(formatNamespace(levels));
        yield* this.groupItems(this.questions.recordRaised(levels, kind.value.interrupts));
        yield* this.trace.questionItems(kind.value.interrupts);
        break;
      case "interruptResolved":
        this.trace.forgetQuestions(kind.value.interrupts);
        break;
      case "task":
        if (kind.value.phase === TaskChange_Phase.SCHEDULED) this.messages.recordTriggers(event, kind.value);
        if (kind.value.phase === TaskChange_Phase.RESTARTED) this.messages.recordRestart(event);
        yield* this.trace.taskItems(levels, event, kind.value);
        break;
      case "checkpoint":
        yield* this.trace.checkpointItems(levels, event, kind.value);
        break;
      case "custom":
        if (this.modes.has("custom")) yield { mode: "custom", levels, data: fromPayload(kind.value.value) };
        break;
      case "message":
        if (this.modes.has("messages"))
          yield { mode: "messages", levels, data: this.messages.emitted(event, kind.value) };
    }
  }

  private *stateItems(levels: Levels, values: StateValues): Generator<StreamItem> {
    if (!this.showsState(levels, values)) return;
    if (this.modes.has("messages")) this.messages.markSeen(fromPayload(values.values, { unsafe: "bigint" }));
    if (!this.modes.has("values")) return;
    const state = readState(this.shapeOf(levels), values.values);
    if (this.isNews(levels, state))
      yield { mode: "values", levels, data: selectKeys(state, this.keysOf(levels)) };
  }

  /** Whether a state shows; LangGraph shows the progress of a graph that waits for the root alone. */
  private showsState(levels: Levels, values: StateValues): boolean {
    const namespace = formatNamespace(levels);
    if (values.checkpoint !== undefined) {
      this.stored.add(namespace);
      return true;
    }
    return levels.length === 0 || !(this.stored.has(namespace) || this.asking.has(namespace));
  }

  /** With chosen keys a state is shown only when one of them was written. */
  private isNews(levels: Levels, state: unknown): boolean {
    const keys = this.keysOf(levels);
    if (keys === undefined || !isObject(state)) return true;
    const namespace = formatNamespace(levels);
    const chosen = typeof keys === "string" ? [keys] : keys;
    const now = JSON.stringify(selectKeys(state, chosen), (_, value) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    const before = this.lastShown.get(namespace);
    this.lastShown.set(namespace, now);
    const written = this.touched.get(namespace) ?? new Set();
    this.touched.delete(namespace);
    const { inputKeys } = this.options;
    if (levels.length === 0 && before === undefined && inputKeys !== undefined)
      return chosen.some((key) => inputKeys.includes(key));
    return chosen.some((key) => written.has(key)) || (now !== before && now !== "{}");
  }

  private *updateItems(levels: Levels, event: Event, update: NodeUpdate): Generator<StreamItem> {
    const node = publicName(event.node);
    // A graph that persists begins anew when its node runs again.
    this.lastShown.delete(formatNamespace([...levels, node]));
    const text = payloadText(update.values);
    const value = text === undefined ? undefined : this.shapeOf(levels).decodeState(text);
    this.trace.recordUpdate(event, value, update.cached);
    this.recordTouched(levels, value);
    if (this.modes.has("messages") && !update.cached) {
      for (const data of this.messages.returned(event, fromPayload(update.values, { unsafe: "bigint" }))) {
        yield { mode: "messages", levels, data };
      }
    }
    if (!this.modes.has("updates")) return;
    const cached = update.cached ? { __metadata__: { cached: true } } : {};
    const shown = value === null ? undefined : this.selectUpdate(levels, value);
    // LangGraph.js leaves a node out that did not write the one key that shows.
    const isLeftOut = shown === undefined && typeof this.keysOf(levels) === "string";
    yield { mode: "updates", levels, data: isLeftOut ? cached : { [node]: shown ?? {}, ...cached } };
  }

  private recordTouched(levels: Levels, value: unknown): void {
    const namespace = formatNamespace(levels);
    const touched = this.touched.get(namespace) ?? new Set();
    for (const part of Array.isArray(value) ? value : [value]) {
      if (isObject(part)) for (const key of Object.keys(part)) touched.add(key);
    }
    this.touched.set(namespace, touched);
  }

  /** The part of an update that shows; `undefined` when nothing of it does. */
  private selectUpdate(levels: Levels, value: unknown): unknown {
    const keys = this.keysOf(levels);
    if (keys === undefined) return value;
    if (Array.isArray(value)) {
      const parts = value.map((part) => this.selectUpdate(levels, part)).filter((part) => part !== undefined);
      return parts.length > 1 ? parts : parts[0];
    }
    if (!isObject(value)) return value;
    const shown = selectKeys(value, keys);
    return typeof keys !== "string" && Object.keys(shown as object).length === 0 ? undefined : shown;
  }

  private *groupItems(groups: readonly QuestionGroup[]): Generator<StreamItem> {
    for (const { levels, asked } of groups) {
      for (const mode of ["updates", "values"] as const) {
        if (this.modes.has(mode)) yield { mode, levels, data: { [INTERRUPT]: asked } };
      }
    }
  }

  private shapeOf(levels: Levels): GraphShape {
    return this.options.shape.findGraph(levels) ?? this.options.shape;
  }

  /** The keys of a graph that show, all when left out: those of the call, or the output of a graph inside. */
  private keysOf(levels: Levels): string | readonly string[] | undefined {
    if (levels.length === 0) return this.options.outputKeys;
    return this.options.shape.findGraph(levels)?.shownKeys;
  }
}

/** Whether a state is that of a superstep that is not over, at the end of a run that waits. */
function isPartial(levels: Levels, values: StateValues): boolean {
  return levels.length === 0 && values.checkpoint === undefined;
}

/** Whether the run goes on after the state that was shown last. */
function showsProgress(event: Event): boolean {
  const { kind } = event;
  if (kind.case === "interrupt") return event.namespace.length > 0;
  return kind.case === "checkpoint" || kind.case === "task" || kind.case === "update";
}

/** One running attempt: its lease, its events, its memos and its calls. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Channel } from "../_gen/graphd/v1/event_pb.js";
import { SubgraphPersistence } from "../_gen/graphd/v1/graph_pb.js";
import type {
  CallGraphRequestSchema,
  CallGraphResponse,
  RecordMemoRequestSchema,
  RecordMemoResponse,
} from "../_gen/graphd/v1/worker_service_pb.js";
import type {
  EmitItemSchema,
  EmitSchema,
  TaskAssignment,
  TaskUpdateSchema,
} from "../_gen/graphd/v1/worker_task_pb.js";
import { encode, payloadText, textPayload } from "../codec/index.js";
import { GraphdError, GraphInterrupt } from "../errors/index.js";
import {
  CalledCommand,
  CalledFailure,
  type CurrentTask,
  currentScope,
  currentTask,
  type GraphCall,
  type Place,
  type Replay,
  type TaskHost,
} from "../runtime/index.js";
import { decodeValue } from "../state/index.js";
import type { BaseStore } from "../values/index.js";

const CHANNELS = { custom: Channel.CUSTOM, messages: Channel.MESSAGES } as const;
const PERSISTENCE = {
  inherit: SubgraphPersistence.INHERIT,
  persist: SubgraphPersistence.PERSIST,
  disabled: SubgraphPersistence.DISABLED,
} as const;
/** Milliseconds after which a task that has not ended is announced, and after which events are sent. */
const ANNOUNCE_AFTER = 100;
const GATHER = 5;
/** Of the events that wait: what is more is dropped. */
const MOST_WAITING = 1000;

export type WireEmit = MessageInitShape<typeof EmitSchema>;

/** What an attempt needs of its session. */
export interface AttemptSession {
  readonly store: BaseStore | undefined;
  sendUpdate(update: MessageInitShape<typeof TaskUpdateSchema>): void;
  /** Nothing was lost, as far as can be known at once. */
  readonly isSure: boolean;
  /** Waits until it is known whether the attempt is lost. */
  confirmLease(attempt: Attempt): Promise<void>;
  recordMemo(
    attempt: Attempt,
    request: MessageInitShape<typeof RecordMemoRequestSchema>,
  ): Promise<RecordMemoResponse>;
  callGraph(
    attempt: Attempt,
    request: MessageInitShape<typeof CallGraphRequestSchema>,
  ): Promise<CallGraphResponse>;
}

export class Attempt implements TaskHost {
  /** It was given to another worker. */
  lost = false;
  /** Its result is taken. */
  ended = false;
  /** Its run is not taken up again yet: another server may give the task away. */
  undecided = false;
  replay: Replay | undefined;
  private readonly controller = new AbortController();
  private readonly abandonment = new AbortController();
  private readonly announceTimer: NodeJS.Timeout;
  private graceTimer: NodeJS.Timeout | undefined;
  private announced = false;
  private items: MessageInitShape<typeof EmitItemSchema>[] = [];
  private dropped = 0n;
  private sent = 0n;
  private flushTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly assignment: TaskAssignment,
    private readonly session: AttemptSession,
    readonly address: string,
  ) {
    this.announceTimer = setTimeout(() => this.announce(), ANNOUNCE_AFTER);
  }

  get token(): Uint8Array {
    return this.assignment.lease?.token ?? new Uint8Array();
  }

  get store(): BaseStore | undefined {
    return this.session.store;
  }

  get threadId(): string {
    return this.assignment.threadId;
  }

  get taskId(): string {
    return this.assignment.taskId;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get isGone(): boolean {
    return this.lost || this.ended;
  }

  /** Fires when nothing that the code still does is taken. */
  get abandoned(): AbortSignal {
    return this.abandonment.signal;
  }

  /** Asks the code to end. What it does within the grace, in milliseconds, is still taken. */
  stop(reason: string, grace = 0): void {
    this.controller.abort(Object.assign(new Error(reason), { name: "AbortError" }));
    if (grace > 0) this.graceTimer ??= setTimeout(() => this.abandonment.abort(), grace);
    else this.abandonment.abort();
  }

  /** Its result is taken. */
  end(): void {
    this.ended = true;
    clearTimeout(this.announceTimer);
    clearTimeout(this.graceTimer);
    clearTimeout(this.flushTimer);
  }

  private announce(): void {
    if (!this.announced && !this.isGone) this.reportAlive();
  }

  reportAlive(): void {
    this.announced = true;
    this.session.sendUpdate({ leaseToken: this.token, kind: { case: "alive", value: {} } });
  }

  emitEvent(channel: "custom" | "messages", name: string, value: unknown): void {
    const kind = CHANNELS[channel];
    if (!this.assignment.emit.includes(kind) || this.isGone || this.replay?.isMuted(currentScope())) return;
    if (this.items.length >= MOST_WAITING) {
      this.dropped++;
      return;
    }
    this.items.push({ channel: kind, name, value: textPayload(encode(value ?? null)) });
    this.flushTimer ??= setTimeout(() => this.flush(), GATHER);
  }

  private flush(): void {
    const { emit } = this.takeEvents();
    if (emit === undefined || this.isGone) return;
    this.announced = true;
    this.sent += BigInt(emit.items?.length ?? 0);
    this.session.sendUpdate({ leaseToken: this.token, kind: { case: "emit", value: emit } });
  }

  /** The events that wait, and how many were sent on the stream before. */
  takeEvents(): { emit: WireEmit | undefined; sent: bigint } {
    clearTimeout(this.flushTimer);
    this.flushTimer = undefined;
    const { items, dropped, sent } = this;
    this.items = [];
    this.dropped = 0n;
    return { emit: items.length === 0 && dropped === 0n ? undefined : { items, dropped }, sent };
  }

  async confirmLease(): Promise<void> {
    // A task that the server knows has begun stays here when the connection breaks.
    if (!this.announced) this.reportAlive();
    if (this.isGone || this.undecided || !this.session.isSure) await this.session.confirmLease(this);
  }

  async recordMemo(place: Place, value: unknown): Promise<unknown> {
    const request = { leaseToken: this.token, ...place, value: textPayload(encode(value ?? null)) };
    const { value: recorded } = await this.session.recordMemo(this, request);
    return decodeValue(payloadText(recorded) ?? "null");
  }

  async callGraph(call: GraphCall): Promise<unknown> {
    const response = await this.session.callGraph(this, {
      leaseToken: this.token,
      callIndex: call.index,
      graph: call.graph,
      graphVersion: call.version,
      input: call.input === undefined ? undefined : textPayload(call.input),
      context: call.context === undefined ? undefined : textPayload(call.context),
      persistence: PERSISTENCE[call.persistence],
      interruptBefore: [...call.interruptBefore],
      interruptAfter: [...call.interruptAfter],
      stepLimit: call.stepLimit,
    });
    return readCallOutcome(response, currentTask());
  }
}

/** The output of a called graph, as JSON text; what it did else is thrown. */
function readCallOutcome({ outcome }: CallGraphResponse, task: CurrentTask | undefined): string | undefined {
  switch (outcome.case) {
    case "output":
      return payloadText(outcome.value);
    case "waiting":
      task?.waiting.push(...outcome.value.interruptIds);
      throw new GraphInterrupt();
    case "failure":
      throw new CalledFailure(outcome.value);
    case "command":
      throw new CalledCommand(outcome.value);
    default:
      throw new GraphdError("the server has not said how the called graph ended");
  }
}

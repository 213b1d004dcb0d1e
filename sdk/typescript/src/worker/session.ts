/** A worker's session with a server: connect, run what comes, reconnect. */
import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CallGraphRequestSchema,
  type CallGraphResponse,
  type ConnectRequestSchema,
  type ConnectResponse,
  type RecordMemoRequestSchema,
  type RecordMemoResponse,
  type Welcome,
  WorkerService,
} from "../_gen/graphd/v1/worker_service_pb.js";
import type { TaskUpdateSchema } from "../_gen/graphd/v1/worker_task_pb.js";
import { type Duplex, type DuplexCaller, sleep } from "../calls/index.js";
import { fromDuration, type Manifest, type Program } from "../declare/index.js";
import { GraphdError, isGraphdError, ServerUnavailableError } from "../errors/index.js";
import type { BaseStore } from "../values/index.js";
import type { Attempt } from "./attempt.js";
import { buildHello, endsSession, LONGEST_PAUSE, readIntervals, readVersions, SLOTS } from "./handshake.js";
import { LeaseCertainty } from "./lease_certainty.js";
import { SessionTasks, type TaskSession } from "./session_tasks.js";
import { callUntilAnswered } from "./worker_calls.js";

const FIRST_PAUSE = 50;
const SILENT_BEATS = 3;
/** Milliseconds a server may take to say welcome, however short its beats are. */
const PATIENCE = 2_000;
/** Milliseconds a server may take to end the stream of a worker that leaves. */
const LEAVE_TIMEOUT = 1_000;

type Request = MessageInitShape<typeof ConnectRequestSchema>;
type SessionCaller = DuplexCaller & { readonly address: string; close(): void };

/** Serves the nodes of some programs until it is closed. */
export class Session implements TaskSession {
  readonly versions = new Map<string, string>();
  /** Resolves with the welcome; rejects when the server does not take the worker. */
  readonly ready: Promise<void>;
  /** Resolves when the session is closed; rejects when the server has ended it for good. */
  readonly ended: Promise<void>;
  private readonly workerId = `ts-${randomUUID()}`;
  private readonly tasks = new SessionTasks(this);
  private readonly certainty = new LeaseCertainty();
  private readonly controller = new AbortController();
  private stream: Duplex<any> | undefined;
  private settle!: { resolve(): void; reject(error: unknown): void };
  private isWelcomed = false;
  private beat = 1000;
  private beats = 0n;
  private credits = 1n;
  private waitingCalls = 0;
  private longestPause = LONGEST_PAUSE;
  private heard = performance.now();
  private beatTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly caller: SessionCaller,
    private readonly manifest: Manifest,
    private readonly programs: ReadonlyMap<string, Program>,
    /** That of the outermost graph: graphs inside of it see it too. */
    readonly store: BaseStore | undefined,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    this.ready.catch(() => {}); // it is told to the first who asks
    this.ended = this.serveStreams();
    this.ended.catch(() => {});
  }

  get closed(): AbortSignal {
    return this.controller.signal;
  }

  get isSure(): boolean {
    return this.certainty.isSure;
  }

  /** Tasks run, or their results are not delivered yet. */
  get isBusy(): boolean {
    return this.tasks.leases.length > 0;
  }

  findProgram(graph: string): Program | undefined {
    return this.programs.get(graph);
  }

  /** Takes nothing new, lets running tasks finish for so many milliseconds, and leaves. */
  async close(grace = 0): Promise<void> {
    if (this.closed.aborted) return;
    this.send({ kind: { case: "goodbye", value: { reason: "the worker leaves" } } });
    const end = performance.now() + grace;
    while (this.tasks.leases.length > 0 && performance.now() < end) await sleep(10);
    this.controller.abort(new GraphdError("this worker has left"));
    clearTimeout(this.beatTimer);
    this.certainty.wake();
    this.settle.reject(
      new ServerUnavailableError("this worker has left before the server took it", { code: "UNAVAILABLE" }),
    );
    this.stream?.end();
    const unanswered = setTimeout(() => this.stream?.cancel(), LEAVE_TIMEOUT);
    await this.ended.catch(() => {});
    clearTimeout(unanswered);
    this.caller.close();
  }

  private send(request: Request): void {
    this.stream?.send(request);
  }

  sendUpdate(update: MessageInitShape<typeof TaskUpdateSchema>): void {
    if (update.kind?.case === "emit") this.tasks.results.recordTraffic();
    this.send({ kind: { case: "update", value: update } });
  }

  refuse(leaseToken: Uint8Array, reason: string, missing: Uint8Array[] = []): void {
    this.send({ kind: { case: "nack", value: { leaseToken, reason, missing } } });
  }

  async confirmLease(attempt: Attempt): Promise<void> {
    await this.certainty.waitUntil(
      () => (this.isSure && !attempt.undecided) || attempt.isGone || this.closed.aborted,
    );
    if (attempt.lost)
      throw new GraphdError("the task was given to another worker", { reason: "TASK_LEASE_LOST" });
    if (attempt.ended) {
      throw new GraphdError("the task has ended, and its code goes on: await all that a node begins");
    }
    if (this.closed.aborted) throw new GraphdError("this worker has left; another one runs the task again");
  }

  async recordMemo(
    attempt: Attempt,
    request: MessageInitShape<typeof RecordMemoRequestSchema>,
  ): Promise<RecordMemoResponse> {
    const { recordMemo } = WorkerService.method;
    return await callUntilAnswered(this.caller, recordMemo, request, () => attempt.isGone, this.closed);
  }

  async callGraph(
    attempt: Attempt,
    request: MessageInitShape<typeof CallGraphRequestSchema>,
  ): Promise<CallGraphResponse> {
    this.changeWaiting(+1); // a task that waits must not keep its graph from running
    try {
      const { callGraph } = WorkerService.method;
      return await callUntilAnswered(this.caller, callGraph, request, () => attempt.isGone, this.closed);
    } finally {
      this.changeWaiting(-1);
    }
  }

  private changeWaiting(by: number): void {
    this.waitingCalls += by;
    const value = { totalSlots: SLOTS + this.waitingCalls, revision: ++this.credits };
    this.send({ kind: { case: "credit", value } });
  }

  // The stream.

  private async serveStreams(): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!this.closed.aborted) {
      const problem = await this.serveStream(() => {
        pause = FIRST_PAUSE;
      });
      this.certainty.recordDisconnect();
      this.tasks.deliverUnanswered();
      if (this.closed.aborted) return;
      if (isGraphdError(problem) && endsSession(problem, this.isWelcomed)) {
        this.settle.reject(problem);
        throw problem;
      }
      if (!this.isWelcomed && problem !== undefined) this.lastProblem = problem;
      // Many workers of a server that comes back do not all call at once.
      await sleep(pause * (0.5 + Math.random() / 2), this.closed).catch(() => {});
      pause = Math.min(2 * pause, this.longestPause);
    }
  }

  /** Why the server could not be reached so far. */
  lastProblem: Error | undefined;

  /** Serves one stream to its end; returns its error. */
  private async serveStream(onMessage: () => void): Promise<Error | undefined> {
    this.heard = performance.now();
    this.beats = 0n;
    this.tasks.kept.clear();
    this.certainty.recordQuestion(0n);
    try {
      return await new Promise<Error | undefined>((resolve) => {
        const stream = this.caller.openDuplex(WorkerService.method.connect, {
          onMessage: (response) => {
            this.heard = performance.now();
            onMessage();
            this.handleResponse(response);
          },
          onEnd: resolve,
        });
        this.stream = stream;
        this.send({
          kind: { case: "hello", value: buildHello(this.workerId, this.manifest, this.tasks.leases) },
        });
        this.scheduleBeat();
      });
    } finally {
      clearTimeout(this.beatTimer);
      this.stream = undefined;
    }
  }

  private scheduleBeat(): void {
    clearTimeout(this.beatTimer);
    this.beatTimer = setTimeout(() => this.sendBeat(), this.beat);
  }

  private sendBeat(): void {
    if (performance.now() - this.heard > Math.max(SILENT_BEATS * this.beat, PATIENCE)) {
      this.stream?.cancel();
      return;
    }
    if (this.isWelcomed) {
      this.beats++;
      this.certainty.recordQuestion(this.beats);
      this.send({ kind: { case: "beat", value: { number: this.beats, running: this.tasks.leases } } });
    }
    this.scheduleBeat();
  }

  askLeases(): void {
    if (this.stream !== undefined) this.sendBeat();
  }

  private handleResponse({ kind }: ConnectResponse): void {
    switch (kind.case) {
      case "batch":
        for (const part of kind.value.responses) this.handleResponse(part);
        break;
      case "welcome":
        this.handleWelcome(kind.value);
        break;
      case "task":
        this.tasks.begin(kind.value);
        break;
      case "completed":
        this.tasks.handleCompleted(kind.value);
        break;
      case "cancel":
        this.tasks.stop(kind.value.leaseToken, kind.value.reason, fromDuration(kind.value.grace) ?? 0);
        break;
      case "renewed":
        this.tasks.markRenewed(kind.value.token);
        this.certainty.wake();
        break;
      case "beatAck":
        for (const token of kind.value.lost) this.tasks.lose(token);
        this.tasks.markUndecided(kind.value.undecided);
        this.certainty.recordAnswer(kind.value.number);
        break;
      default: // what only tells, like drain and throttle
    }
  }

  private handleWelcome(welcome: Welcome): void {
    this.isWelcomed = true;
    this.tasks.largest = welcome.maxResultBytes || this.tasks.largest;
    const intervals = readIntervals(welcome);
    this.beat = intervals.beat;
    this.longestPause = intervals.longestPause;
    for (const token of welcome.lost) this.tasks.lose(token);
    this.tasks.markUndecided(welcome.undecided);
    this.certainty.setIntervals(intervals.beat, intervals.lease);
    this.certainty.recordAnswer(0n);
    this.scheduleBeat();
    if (welcome.features.includes("complete")) {
      this.tasks.results.open((value) => this.send({ kind: { case: "complete", value } }));
    }
    const { versions, refusal } = readVersions(welcome);
    for (const [graph, version] of versions) this.versions.set(graph, version);
    if (refusal) this.settle.reject(refusal);
    else this.settle.resolve();
  }
}

/** The tasks that a session has taken, and how their results get to the server. */

import type { Completed } from "../_gen/graphd/v1/worker_service_pb.js";
import { WorkerService } from "../_gen/graphd/v1/worker_service_pb.js";
import type { TaskAssignment, TaskResult } from "../_gen/graphd/v1/worker_task_pb.js";
import type { Caller } from "../calls/index.js";
import type { Program } from "../declare/index.js";
import { isGraphdError } from "../errors/index.js";
import { Attempt, type AttemptSession } from "./attempt.js";
import { KeptValues } from "./kept_values.js";
import { buildNotTaken, buildTooLarge } from "./outcome.js";
import { type Completion, ResultStream, sizeOf, tokenKey } from "./result_stream.js";
import { runTask } from "./run_task.js";
import { callUntilAnswered } from "./worker_calls.js";

/** What the tasks need of their session. */
export interface TaskSession extends AttemptSession {
  readonly caller: Caller & { readonly address: string };
  readonly closed: AbortSignal;
  findProgram(graph: string): Program | undefined;
  refuse(token: Uint8Array, reason: string, missing?: Uint8Array[]): void;
  /** Has the server say at once which attempts are lost. */
  askLeases(): void;
}

export class SessionTasks {
  /** Bytes of a result. */
  largest = 4 << 20;
  readonly results = new ResultStream();
  readonly kept = new KeptValues();
  private readonly attempts = new Map<string, Attempt>();

  constructor(private readonly session: TaskSession) {}

  /** The tokens of the tasks that are here. */
  get leases(): Uint8Array[] {
    return [...this.attempts.values()].map(({ token }) => token);
  }

  /** Runs a task, and hands its result over. */
  begin(assignment: TaskAssignment): void {
    const program = this.session.findProgram(assignment.graph);
    const token = assignment.lease?.token ?? new Uint8Array();
    const missing = this.kept.complete(assignment); // of a task that is refused, too: the server counts on it
    if (program === undefined) {
      this.session.refuse(token, `graph "${assignment.graph}" is not served`);
      return;
    }
    if (missing.length > 0) {
      this.session.refuse(token, "values are missing", missing);
      return;
    }
    const attempt = new Attempt(assignment, this.session, this.session.caller.address);
    this.attempts.set(tokenKey(token), attempt);
    void runTask(attempt, program).then((result) => this.complete(attempt, result));
  }

  private complete(attempt: Attempt, given: TaskResult): void {
    if (attempt.lost) {
      this.forget(attempt);
      return;
    }
    const size = sizeOf(given);
    const result = size > this.largest ? buildTooLarge(size, this.largest) : given;
    const { emit, sent } = attempt.takeEvents();
    const request: Completion = {
      leaseToken: attempt.token,
      result,
      emit,
      emitted: sent,
      takeNext: !this.session.closed.aborted,
    };
    if (!this.results.sendResult(attempt, request, size)) void this.deliver(attempt, request);
  }

  /** Hands a result over by a call, however long that takes. */
  private async deliver(attempt: Attempt, request: Completion): Promise<void> {
    try {
      const { next } = await this.completeTask(attempt, request);
      if (next) this.begin(next);
    } catch (error) {
      await this.reportNotTaken(attempt, error);
    } finally {
      this.forget(attempt);
    }
  }

  private async completeTask(attempt: Attempt, request: Completion) {
    const { caller, closed } = this.session;
    return await callUntilAnswered(
      caller,
      WorkerService.method.completeTask,
      request,
      () => {
        if (!attempt.lost) this.session.askLeases();
        return attempt.lost;
      },
      closed,
    );
  }

  /** Silence would have the task run again, by one worker after the other. */
  private async reportNotTaken(attempt: Attempt, error: unknown): Promise<void> {
    if (this.session.closed.aborted || isGraphdError(error, "TASK_LEASE_LOST")) return;
    const request = { leaseToken: attempt.token, result: buildNotTaken(error) };
    await this.completeTask(attempt, request).catch(() => {});
  }

  private forget(attempt: Attempt): void {
    this.attempts.delete(tokenKey(attempt.token));
    attempt.end();
  }

  /** The server has taken a result that went on the stream, or wants it by a call. */
  handleCompleted({ leaseToken, reason, response }: Completed): void {
    const pending = this.results.takeAnswered(leaseToken);
    if (pending === undefined) return;
    if (reason) {
      void this.deliver(pending.attempt, pending.request); // a call tells for good
      return;
    }
    this.forget(pending.attempt);
    if (response?.next) this.begin(response.next);
  }

  /** The stream has ended: results that it did not answer go by a call. */
  deliverUnanswered(): void {
    for (const { attempt, request } of this.results.close()) void this.deliver(attempt, request);
  }

  /** Asks a task to end: its run is over. What it does within the grace, in milliseconds, is still taken. */
  stop(token: Uint8Array, reason: string, grace: number): void {
    this.attempts.get(tokenKey(token))?.stop(reason || "the task was stopped", grace);
  }

  /** Ends a task that was given to another worker. */
  lose(token: Uint8Array): void {
    const attempt = this.attempts.get(tokenKey(token));
    if (attempt === undefined) return;
    attempt.lost = true;
    attempt.stop("the task was given to another worker");
  }

  /** The server has said of all tasks that are here which may still be given to another worker. */
  markUndecided(tokens: readonly Uint8Array[]): void {
    const undecided = new Set(tokens.map(tokenKey));
    for (const [key, attempt] of this.attempts) attempt.undecided = undecided.has(key);
  }

  /** A task stays here. */
  markRenewed(token: Uint8Array): void {
    const attempt = this.attempts.get(tokenKey(token));
    if (attempt) attempt.undecided = false;
  }
}

/** Results that go on the stream of a session while it is quiet, which saves a call for each. */
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { CompleteTaskRequestSchema } from "../_gen/graphd/v1/worker_service_pb.js";
import { type TaskResult, TaskResultSchema } from "../_gen/graphd/v1/worker_task_pb.js";
import type { Attempt } from "./attempt.js";

/** Bytes; a larger message would hold up the stream. */
const LARGEST = 64 << 10;
/** Milliseconds without events, so that no result has to stand behind them. */
const QUIET = 1000;

export type Completion = MessageInitShape<typeof CompleteTaskRequestSchema>;
export type PendingResult = { attempt: Attempt; request: Completion };

export class ResultStream {
  private send: ((request: Completion) => void) | undefined;
  private waiting = new Map<string, PendingResult>();
  private lastTraffic = Number.NEGATIVE_INFINITY;

  /** The stream takes results from now on. */
  open(send: (request: Completion) => void): void {
    this.send = send;
  }

  /** The stream has ended; returns the results that it did not answer. */
  close(): PendingResult[] {
    const left = [...this.waiting.values()];
    this.send = undefined;
    this.waiting = new Map();
    return left;
  }

  /** Events are sent on the stream. */
  recordTraffic(): void {
    this.lastTraffic = performance.now();
  }

  /** Sends a result; false if it has to go by a call. */
  sendResult(attempt: Attempt, request: Completion, size: number): boolean {
    if (this.send === undefined || size > LARGEST || performance.now() - this.lastTraffic < QUIET)
      return false;
    this.waiting.set(tokenKey(attempt.token), { attempt, request });
    this.send(request);
    return true;
  }

  /** Gives a result up that was answered. */
  takeAnswered(token: Uint8Array): PendingResult | undefined {
    const key = tokenKey(token);
    const found = this.waiting.get(key);
    this.waiting.delete(key);
    return found;
  }
}

/** The token of a lease as a key. */
export function tokenKey(token: Uint8Array): string {
  return Buffer.from(token.buffer, token.byteOffset, token.byteLength).toString("latin1");
}

/** Bytes of a result. */
export function sizeOf(result: TaskResult): number {
  return toBinary(TaskResultSchema, result).length;
}

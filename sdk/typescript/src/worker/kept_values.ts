/** The values of states that a worker keeps from one task to the next, because the server sends each of them once. */
import type { Payload } from "../_gen/graphd/v1/payload_pb.js";
import type { TaskAssignment } from "../_gen/graphd/v1/worker_task_pb.js";
import { payloadText } from "../codec/index.js";
import { RepeatedText } from "../state/index.js";
import { tokenKey } from "./result_stream.js";

/** Bytes of the values that a session keeps. */
export const KEPT_BYTES = 32n << 20n;

/** The texts of the payloads that are kept. */
const repeated = new WeakMap<Payload, RepeatedText>();

/** The text of a payload; `undefined` when it holds none. */
export function textOf(payload: Payload | undefined): string | RepeatedText | undefined {
  return (payload && repeated.get(payload)) ?? payloadText(payload);
}

/** The values of one stream. The server alone says what to keep and what to forget, and counts the bytes. */
export class KeptValues {
  private readonly values = new Map<string, Payload>();

  /** Forgets all: a new stream begins. */
  clear(): void {
    this.values.clear();
  }

  /** Puts the values that the server has left out into an assignment. Returns what is missing here. */
  complete({ channels, kept }: TaskAssignment): Uint8Array[] {
    const missing: Uint8Array[] = [];
    if (kept === undefined) return missing;
    for (const [channel, digest] of Object.entries(kept.keep)) this.keep(digest, channels[channel]);
    for (const [channel, digest] of Object.entries(kept.use)) {
      const value = this.values.get(tokenKey(digest));
      if (value === undefined) missing.push(digest);
      else channels[channel] = value;
    }
    for (const digest of kept.forget) this.values.delete(tokenKey(digest));
    return missing;
  }

  private keep(digest: Uint8Array, value: Payload | undefined): void {
    const text = payloadText(value);
    if (value === undefined || text === undefined) return;
    repeated.set(value, new RepeatedText(text));
    this.values.set(tokenKey(digest), value);
  }
}

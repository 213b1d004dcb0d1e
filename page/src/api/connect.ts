// Calls of the server: the Connect protocol with JSON (https://connectrpc.com/docs/protocol).

import type { ErrorDetail } from "./details";
import { readDetails } from "./details";

/** A call that failed. reason is a stable word to branch on, "" when there is none. */
export class CallError extends Error {
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly { field: string; description: string }[];

  constructor(readonly code: string, message: string, details: readonly ErrorDetail[] = []) {
    super(message);
    ({ reason: this.reason, metadata: this.metadata, violations: this.violations } = readDetails(details));
  }
}

interface WireError {
  code?: string;
  message?: string;
  details?: readonly ErrorDetail[];
}

const service = "/graphd.v1.";
const endFlag = 2;
const headBytes = 5;

/** Client makes calls as one caller. */
export class Client {
  /** token gives the bearer token of the next call, "" for none. */
  constructor(private readonly token: () => string) {}

  /** Makes a unary call. Throws a CallError. */
  async call<Res>(method: string, request: object, signal?: AbortSignal): Promise<Res> {
    const response = await this.post(method, "application/json", JSON.stringify(request), signal);
    const body: unknown = await response.json().catch(() => undefined);
    if (!response.ok) throw toCallError(body, response.status);
    return body as Res;
  }

  /** Makes a call whose answers come one after the other. Throws a CallError, also when the connection breaks. */
  async *follow<Res>(method: string, request: object, signal?: AbortSignal): AsyncGenerator<Res, void> {
    const response = await this.post(method, "application/connect+json", envelope(JSON.stringify(request)), signal);
    if (!response.ok || !response.body) throw toCallError(await response.json().catch(() => undefined), response.status);
    const reader = response.body.getReader();
    try {
      for await (const [flags, text] of envelopes(reader)) {
        const message: unknown = JSON.parse(text);
        if (!(flags & endFlag)) yield message as Res;
        else if ((message as { error?: WireError }).error) throw toCallError((message as { error: WireError }).error, 200);
        else return;
      }
    } finally {
      reader.cancel().catch(() => undefined); // it has ended by itself
    }
    throw new CallError("unavailable", "the connection to the server broke");
  }

  private async post(method: string, type: string, body: string | Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "Content-Type": type };
    const token = this.token();
    if (token) headers["Authorization"] = "Bearer " + token;
    try {
      return await fetch(service + method, { method: "POST", headers, body, signal: signal ?? null });
    } catch (e) {
      if (signal?.aborted) throw e;
      throw new CallError("unavailable", "the server can't be reached");
    }
  }
}

function toCallError(body: unknown, status: number): CallError {
  const e = (body ?? {}) as WireError;
  return new CallError(e.code ?? "unknown", e.message ?? `the server answered with status ${status}`, e.details);
}

/** Returns an id by which the server knows a repeated call. crypto.randomUUID is not there in plain text. */
export function newRequestId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

function envelope(text: string): Uint8Array<ArrayBuffer> {
  const message = new TextEncoder().encode(text);
  const all = new Uint8Array(headBytes + message.length);
  new DataView(all.buffer).setUint32(1, message.length);
  all.set(message, headBytes);
  return all;
}

/** Yields the flags and the text of each envelope. */
async function* envelopes(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<[number, string]> {
  const decoder = new TextDecoder();
  let rest = new Uint8Array();
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ value: undefined, done: true }));
    if (done || !value) return;
    const joined = new Uint8Array(rest.length + value.length);
    joined.set(rest);
    joined.set(value, rest.length);
    rest = joined;
    while (rest.length >= headBytes) {
      const size = new DataView(rest.buffer, rest.byteOffset).getUint32(1);
      if (rest.length < headBytes + size) break;
      yield [rest[0]!, decoder.decode(rest.subarray(headBytes, headBytes + size))];
      rest = rest.subarray(headBytes + size);
    }
  }
}

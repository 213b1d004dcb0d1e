/** Messages of a stream over HTTP: a byte with flags, the length in four bytes, and the message. */
export type Envelope = { flags: number; bytes: Uint8Array };

/** Flag of the last envelope, which has an error or nothing. */
export const LAST = 2;

/** One message in its envelope. */
export function wrapMessage(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const wrapped = new Uint8Array(5 + message.length);
  new DataView(wrapped.buffer).setUint32(1, message.length);
  wrapped.set(message, 5);
  return wrapped;
}

/** The envelopes of a body, as they arrive. */
export async function* readEnvelopes(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Envelope, void, undefined> {
  const reader = body.getReader();
  let waiting = new Uint8Array();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      waiting = join(waiting, value);
      while (waiting.length >= 5) {
        const end = 5 + new DataView(waiting.buffer, waiting.byteOffset).getUint32(1);
        if (waiting.length < end) break;
        yield { flags: waiting[0] ?? 0, bytes: waiting.subarray(5, end) };
        waiting = waiting.subarray(end);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

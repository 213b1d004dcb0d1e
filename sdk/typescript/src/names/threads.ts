import { sha256 } from "./sha256.js";

/**
 * Ids of threads. The server takes fewer than programs may use. Others are written as `::` and their bytes, of
 * which those that are not plain are `:` and two hexadecimal digits. An id that is too long then is written
 * as `::::` and its digest. An id that looks like one that was escaped is escaped, too. The Python SDK
 * does the same.
 */
const ALPHABET = /^[A-Za-z0-9_.:-]+$/;
const PLAIN = /[A-Za-z0-9_.-]/;
const LONGEST = 128;
const ESCAPED = "::";
const DIGESTED = "::::";

/** A thread id for the server. */
export function wireThread(thread: unknown, prefix = ""): string {
  const text = String(thread);
  const most = LONGEST - prefix.length;
  if (text.length <= most && ALPHABET.test(text) && publicThread(text) === text) return prefix + text;
  const bytes = new TextEncoder().encode(text);
  const escaped = ESCAPED + [...bytes].map(escapeByte).join("");
  return prefix + (escaped.length > most ? DIGESTED + sha256(bytes) : escaped);
}

/** The thread id that a program used; what the server knows, of a digested one and of one that was not escaped. */
export function publicThread(thread: string): string {
  if (!thread.startsWith(ESCAPED) || thread.startsWith(DIGESTED)) return thread;
  const text = unescapeBytes(thread.slice(ESCAPED.length));
  return text !== undefined && wireThread(text) === thread ? text : thread;
}

function escapeByte(byte: number): string {
  const character = String.fromCharCode(byte);
  return PLAIN.test(character) ? character : `:${byte.toString(16).padStart(2, "0")}`;
}

function unescapeBytes(escaped: string): string | undefined {
  const [first = "", ...rest] = escaped.split(":");
  const bytes = [...new TextEncoder().encode(first)];
  for (const part of rest) {
    if (!/^[0-9a-f]{2}/.test(part)) return undefined;
    bytes.push(Number.parseInt(part.slice(0, 2), 16), ...new TextEncoder().encode(part.slice(2)));
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

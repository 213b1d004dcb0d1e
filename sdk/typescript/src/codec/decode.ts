import { type Path, UnsafeNumberError } from "./problems.js";

export type DecodeOptions = {
  /**
   * What becomes of integers that a number would round: `"error"`, which names their place and is the
   * default, or `"bigint"`.
   */
  unsafe?: "error" | "bigint";
};

/** The value of JSON text. No number is rounded: see `unsafe`. */
export function decode(text: string, options: DecodeOptions = {}): unknown {
  // JSON.parse does not tell that it has rounded; only numbers with so many digits can be.
  if (!/\d{16}|[eE]\+?\d{2}/.test(text)) return JSON.parse(text);
  const value = parseExactly(text);
  if (options.unsafe !== "bigint") refuseBigints(value, []);
  return value;
}

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** Parses with unsafe integers as bigints. */
function parseExactly(text: string): unknown {
  const mark = chooseMark(text);
  let marked = false;
  const changed = text.replace(TOKENS, (token) => {
    if (token.startsWith('"')) return token;
    const number = Number(token);
    if (!Number.isFinite(number)) throw new UnsafeNumberError(token);
    if (!/^-?\d+$/.test(token) || Number.isSafeInteger(number)) return token;
    marked = true;
    return `"${mark}${token}"`;
  });
  if (!marked) return JSON.parse(text);
  return JSON.parse(changed, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

/** A text with which no string of the JSON text begins. */
function chooseMark(text: string): string {
  let mark = "integer:";
  while (text.includes(mark)) mark = `_${mark}`;
  return mark;
}

/** Throws `UnsafeNumberError` at the first bigint of a value. */
export function refuseBigints(value: unknown, path: Path): void {
  if (typeof value === "bigint") throw new UnsafeNumberError(value.toString(), path);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) refuseBigints(item, [...path, index]);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) refuseBigints(item, [...path, key]);
  }
}

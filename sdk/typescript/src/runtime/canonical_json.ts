/**
 * The form of a JSON value of which digests are made. docs/worker-protocol.md describes it; the server makes
 * the same one.
 */

/** A number as it is written. */
class NumberText {
  constructor(readonly text: string) {}
}

export type CanonicalValue =
  | null
  | boolean
  | string
  | NumberText
  | CanonicalValue[]
  | { [key: string]: CanonicalValue };

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** Parses JSON text; numbers stay as they are written. */
export function parseExactly(text: string): CanonicalValue {
  let mark = "number:";
  while (text.includes(mark)) mark = `_${mark}`;
  const marked = text.replace(TOKENS, (token) => (token.startsWith('"') ? token : `"${mark}${token}"`));
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? new NumberText(value.slice(mark.length)) : value,
  ) as CanonicalValue;
}

/** The text of a value in its form. */
export function writeCanonical(value: CanonicalValue): string {
  if (value instanceof NumberText) return writeNumber(value.text);
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, item]): [string, CanonicalValue] => [
      wellFormed(key),
      item,
    ]);
    entries.sort(([one], [other]) => compareCodePoints(one, other));
    return `{${entries.map(([key, item]) => `${quote(key)}:${writeCanonical(item)}`).join(",")}}`;
  }
  return String(value);
}

function compareCodePoints(one: string, other: string): number {
  const [left, right] = [[...one], [...other]];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

const SHORT: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  '"': '\\"',
  "\\": "\\\\",
};
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
const ESCAPED = /[\u0000-\u001f"\\]/g;

function quote(text: string): string {
  const escaped = wellFormed(text).replace(
    ESCAPED,
    (one) => SHORT[one] ?? `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${escaped}"`;
}

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)(\d+))?$/;
const LONGEST_EXPONENT = 9;

function writeNumber(text: string): string {
  const [, minus = "", whole = "", fraction = "", sign = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  if (exponent.replace(/^0+/, "").length > LONGEST_EXPONENT) return text;
  const kept = digits.replace(/0+$/, "");
  const power = Number(`${sign}${exponent}`) + digits.length - kept.length - fraction.length;
  return `${minus}${kept}${power === 0 ? "" : `e${power}`}`;
}

/** JSON pointers into questions: parts that may differ, and parts that only some callers see. */
import type { CanonicalValue } from "./canonical_json.js";

const INDEX = /^(0|[1-9][0-9]*)$/;
const PARTS = ["message", "schema", "value"];
const MOST_SECRETS = 16;
const LONGEST_SECRET = 256;

/** The keys and indexes of a pointer that is not empty. */
function pathOf(pointer: string): string[] {
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Checks `driftIgnore`. TypeError says what it takes. */
export function checkDriftIgnore(parts: readonly string[]): readonly string[] {
  if (typeof parts === "string") throw new TypeError(`driftIgnore must be a list, like ["${String(parts)}"]`);
  for (const part of parts) {
    if (!PARTS.includes(part) && !/^(\/([^~/]|~[01])*)+$/.test(part)) {
      throw new TypeError(
        `driftIgnore has ${JSON.stringify(part)}; it takes JSON pointers into the value, like "/asked_at", ` +
          'and "message", "schema", "value"',
      );
    }
  }
  return parts;
}

/** Checks the pointers of secret parts. TypeError says what the server would refuse. */
export function checkSecret(pointers: readonly string[]): readonly string[] {
  if (typeof pointers === "string")
    throw new TypeError(`secret must be a list, like ["${String(pointers)}"]`);
  if (pointers.length > MOST_SECRETS) {
    throw new TypeError(`secret has ${pointers.length} pointers; at most ${MOST_SECRETS} are allowed`);
  }
  pointers.forEach((pointer, at) => {
    if (typeof pointer !== "string" || !/^(\/([^~/]|~[01])*)*$/.test(pointer)) {
      throw new TypeError(
        `secret has ${JSON.stringify(pointer)}; it takes JSON pointers like "/card/number", and "" for the whole`,
      );
    }
    const size = new TextEncoder().encode(pointer).length;
    if (size > LONGEST_SECRET) {
      throw new TypeError(`secret has a pointer of ${size} bytes; at most ${LONGEST_SECRET} are allowed`);
    }
    for (const other of pointers.slice(0, at)) {
      if (`${pointer}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${pointer}/`)) {
        throw new TypeError(
          `secret has "${other}" and "${pointer}", which overlap: leave out the longer one`,
        );
      }
    }
  });
  return pointers;
}

/** A value with a mark in the place of each secret part, and whether there was one. Changes the value. */
export function hideParts(
  value: CanonicalValue,
  pointers: readonly string[],
): { value: CanonicalValue; found: boolean } {
  let found = false;
  for (const pointer of pointers) {
    if (pointer === "") return { value: { __redacted__: true }, found: true };
    found =
      changeAt(value, pathOf(pointer), (holder, key) => {
        (holder as Record<string, CanonicalValue>)[key] = { __redacted__: true };
      }) || found;
  }
  return { value, found };
}

/** Removes the parts of a value that may differ: a field, or what stands in a list. Changes the value. */
export function removeParts(value: CanonicalValue, pointers: readonly string[]): void {
  for (const pointer of pointers) {
    if (!pointer.startsWith("/")) continue;
    changeAt(value, pathOf(pointer), (holder, key) => {
      if (Array.isArray(holder)) holder[Number(key)] = null;
      else delete holder[key];
    });
  }
}

type Holder = CanonicalValue[] | { [key: string]: CanonicalValue };

function changeAt(
  value: CanonicalValue,
  path: readonly string[],
  change: (holder: Holder, key: string) => void,
): boolean {
  const [first = "", ...rest] = path;
  if (typeof value !== "object" || value === null) return false;
  const holder = value as Holder;
  const has = Array.isArray(holder)
    ? INDEX.test(first) && Number(first) < holder.length
    : Object.hasOwn(holder, first);
  if (!has) return false;
  if (rest.length > 0)
    return changeAt((holder as Record<string, CanonicalValue>)[first] as CanonicalValue, rest, change);
  change(holder, first);
  return true;
}

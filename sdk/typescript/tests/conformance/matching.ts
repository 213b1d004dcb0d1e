/**
 * Compares what happened with what a case expects. Ids are symbols: cp1, t1 and int1 stand for the same real id
 * wherever they stand in one case, and for different ids than cp2, t2 and int2.
 */
const SYMBOL = /^(cp|t|int)\d+$/;
const ANY = new Set(["<ts>", "<uuid>", "<error>"]);
const ANYTHING = "<anything>";
const UNORDERED = new Set(["__interrupt__", "interrupts"]);
/** How many bindings are followed at the same time. */
const MOST_POSSIBLE = 24 * 24;

export type Bindings = ReadonlyMap<string, string>;
type Fields = Record<string, unknown>;

/** The bindings under which both are equal; none when they differ. */
export function match(expected: unknown, actual: unknown, known: Bindings, key = ""): Bindings | undefined {
  if (expected === ANYTHING) return known;
  if (key === "error" && typeof expected === "string") {
    const [kind] = expected.split("("); // the type of an error alone
    const name = (actual as Fields | null)?.name ?? actual; // an error, or the name of one
    return name === kind || (kind === "CancelledError" && name === "AbortError") ? known : undefined;
  }
  if (typeof expected === "string") return matchText(expected, actual, known);
  if (Array.isArray(expected)) return matchList(expected, actual, known, key);
  if (typeof expected === "object" && expected !== null)
    return matchFields(expected as Fields, actual, known);
  return Object.is(expected, actual) ? known : undefined;
}

function matchList(expected: unknown[], actual: unknown, known: Bindings, key: string): Bindings | undefined {
  if (!Array.isArray(actual) || actual.length !== expected.length) return undefined;
  if (UNORDERED.has(key)) return matchUnordered(expected, actual, known).next().value as Bindings | undefined;
  let bound: Bindings | undefined = known;
  for (const [at, one] of expected.entries()) bound = bound && match(one, actual[at], bound);
  return bound;
}

function matchFields(expected: Fields, actual: unknown, known: Bindings): Bindings | undefined {
  if (typeof actual !== "object" || actual === null || Array.isArray(actual)) return undefined;
  const wanted = Object.entries(expected).map(([key, value]): [string, unknown] => [
    key.includes(":") ? substituteText(key, known) : key,
    value,
  ]);
  const keys = new Set(wanted.map(([key]) => key));
  if (Object.keys(actual).some((key) => !keys.has(key))) return undefined;
  let bound: Bindings | undefined = known;
  for (const [key, value] of wanted) {
    if (!(key in actual) && value !== ANYTHING) return undefined;
    bound = bound && match(value, (actual as Fields)[key], bound, key);
  }
  return bound;
}

function matchText(expected: string, actual: unknown, known: Bindings): Bindings | undefined {
  if (typeof actual !== "string") return undefined;
  if (ANY.has(expected)) return actual === "" ? undefined : known;
  const [wanted, got] = [expected.split(/([:|])/), actual.split(/([:|])/)];
  if (!wanted.some((part) => SYMBOL.test(part) || part === "<task>"))
    return expected === actual ? known : undefined;
  if (wanted.length !== got.length) return undefined;
  let bound: Bindings | undefined = known;
  for (const [at, part] of wanted.entries()) {
    const real = got[at] ?? "";
    if (SYMBOL.test(part)) bound = bound && bind(part, real, bound);
    else if (part !== real && part !== "<task>") return undefined;
  }
  return bound;
}

/** Binds a symbol to an id, unless either is bound otherwise. */
export function bind(symbol: string, real: string, known: Bindings): Bindings | undefined {
  const before = known.get(symbol);
  if (before !== undefined) return before === real ? known : undefined;
  const kind = symbol.replace(/\d+$/, "");
  const isTaken = [...known].some(([other, id]) => id === real && other.replace(/\d+$/, "") === kind);
  return isTaken ? undefined : new Map([...known, [symbol, real]]);
}

/** All bindings under which lists have equal items, in any order. */
function* matchUnordered(expected: unknown[], actual: unknown[], known: Bindings): Generator<Bindings> {
  if (expected.length !== actual.length) return;
  if (expected.length === 0) {
    yield known;
    return;
  }
  const tried = new Set<string>();
  for (const [at, candidate] of actual.entries()) {
    const text = JSON.stringify(candidate);
    if (tried.has(text)) continue; // equal items give equal bindings
    tried.add(text);
    const bound = match(expected[0], candidate, known);
    if (bound)
      yield* matchUnordered(expected.slice(1), [...actual.slice(0, at), ...actual.slice(at + 1)], bound);
  }
}

/** Compares group by group: inside of one the order means nothing. */
export function matchGroups(
  expected: unknown[],
  actual: unknown[],
  sizes: readonly number[] | undefined,
  known: Bindings,
): Bindings[] {
  if (expected.length !== actual.length) return [];
  let possible: Bindings[] = [known];
  let at = 0;
  for (const size of sizes ?? expected.map(() => 1)) {
    const [wanted, got] = [expected.slice(at, at + size), actual.slice(at, at + size)];
    possible = findDistinct(possible, (before) => matchUnordered(wanted, got, before));
    at += size;
  }
  return possible;
}

/** The first of the bindings that differ: enumerating all would take for ever where many tasks look alike. */
function findDistinct(
  before: readonly Bindings[],
  follow: (known: Bindings) => Iterable<Bindings>,
): Bindings[] {
  const found = new Map<string, Bindings>();
  for (const known of before) {
    for (const bound of follow(known)) {
      found.set(JSON.stringify([...bound].sort()), bound);
      if (found.size === MOST_POSSIBLE) return [...found.values()];
    }
  }
  return [...found.values()];
}

/** Replaces the symbols of an input by their ids. */
export function substitute(value: unknown, known: Bindings): unknown {
  if (typeof value === "string") return substituteText(value, known);
  if (Array.isArray(value)) return value.map((item) => substitute(item, known));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [substituteText(key, known), substitute(item, known)]),
  );
}

function substituteText(text: string, known: Bindings): string {
  return text
    .split(/([:|])/)
    .map((part) => known.get(part) ?? part)
    .join("");
}

// JSON values that stay what they were: numbers keep their digits, and the names of an object keep
// their order, whatever they are.

/** A JSON value. */
export type Json = null | boolean | string | Decimal | readonly Json[] | JsonObject;

/** A number as it was written. */
export class Decimal {
  constructor(readonly text: string) {}
}

/** An object with its members in their order. Of a name that is there twice the last one counts. */
export class JsonObject {
  constructor(readonly members: ReadonlyArray<readonly [string, Json]> = []) {}

  get(name: string): Json | undefined {
    return this.members.findLast(([n]) => n === name)?.[1];
  }

  /** Returns an object with another value for name; undefined removes it. */
  with(name: string, value: Json | undefined): JsonObject {
    if (value === undefined) return new JsonObject(this.members.filter(([n]) => n !== name));
    if (this.get(name) === undefined) return new JsonObject([...this.members, [name, value]]);
    return new JsonObject(this.members.map((m) => (m[0] === name ? [name, value] : m)));
  }
}

/** Says where a text is no JSON. */
export class JsonError extends Error {}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const stringPattern = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const spacePattern = /[ \t\r\n]*/y;
const maxDepth = 128; // as of a payload

/** Reads a JSON text. Throws a JsonError. */
export function parseJson(text: string): Json {
  let at = 0;
  const fail = (wanted: string): never => {
    const line = text.slice(0, at).split("\n");
    throw new JsonError(`line ${line.length}, column ${line[line.length - 1]!.length + 1}: want ${wanted}`);
  };
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const take = (token: string): boolean => {
    match(spacePattern);
    if (!text.startsWith(token, at)) return false;
    at += token.length;
    return true;
  };
  const readString = (wanted: string): string => {
    match(spacePattern);
    const start = at;
    const found = match(stringPattern) ?? fail(wanted);
    try {
      return JSON.parse(found) as string;
    } catch {
      at = start;
      return fail("a string with valid escapes");
    }
  };
  const read = (depth: number): Json => {
    if (depth > maxDepth) fail(`at most ${maxDepth} levels`);
    match(spacePattern);
    if (take("{")) {
      const members: [string, Json][] = [];
      if (take("}")) return new JsonObject(members);
      do {
        const name = readString("a name in quotes");
        if (!take(":")) fail("a colon");
        members.push([name, read(depth + 1)]);
      } while (take(","));
      if (!take("}")) fail("a comma or the end of the object");
      return new JsonObject(members);
    }
    if (take("[")) {
      const items: Json[] = [];
      if (take("]")) return items;
      do items.push(read(depth + 1));
      while (take(","));
      if (!take("]")) fail("a comma or the end of the list");
      return items;
    }
    if (text[at] === '"') return readString("a string");
    for (const [word, value] of [["true", true], ["false", false], ["null", null]] as const) {
      if (take(word)) return value;
    }
    return new Decimal(match(numberPattern) || fail("a JSON value"));
  };
  const value = read(0);
  match(spacePattern);
  if (at < text.length) fail("the end");
  return value;
}

/** Returns the text of a value; indent is "" for one line. */
export function printJson(value: Json, indent = "", margin = ""): string {
  const inner = margin + indent;
  const [open, close, colon] = indent ? ["\n" + inner, "\n" + margin, ": "] : ["", "", ":"];
  const join = (parts: string[]): string => open + parts.join("," + (indent ? open : "")) + close;
  if (value instanceof Decimal) return value.text;
  if (value instanceof JsonObject) {
    if (value.members.length === 0) return "{}";
    return "{" + join(value.members.map(([n, v]) => JSON.stringify(n) + colon + printJson(v, indent, inner))) + "}";
  }
  if (isList(value)) {
    return value.length === 0 ? "[]" : "[" + join(value.map((v) => printJson(v, indent, inner))) + "]";
  }
  return JSON.stringify(value);
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

export function equalJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return printJson(a) === printJson(b);
}

/** Reads the text of a payload, undefined when there is none. */
export function readPayload(payload: { json?: string } | undefined): Json | undefined {
  return payload?.json === undefined ? undefined : parseJson(payload.json);
}

import { isMessage, toStoredMessage } from "../messages/stored_message.js";
import { UnstorableValueError } from "./problems.js";
import { toTaggedForm } from "./tagged.js";

/** As deep as a server takes values. */
const DEEPEST = 128;

export type EncodeOptions = {
  /** A schema brings containers back: a Map is written as pairs, a Set as a list, bytes as base64. */
  containers?: boolean;
};

/** JSON text of a value. `UnstorableValueError` names what has none that brings it back. */
export function encode(value: unknown, options: EncodeOptions = {}): string {
  const text = new Writer(options.containers === true).write(value, 0);
  if (text === undefined) throw new UnstorableValueError("undefined has no JSON form: use null");
  return text;
}

class Writer {
  constructor(private readonly containers: boolean) {}

  /** The text of a value, `undefined` for what is left out. */
  write(value: unknown, depth: number): string | undefined {
    switch (typeof value) {
      case "string":
        return writeString(value);
      case "number":
        return writeNumber(value);
      case "boolean":
        return value ? "true" : "false";
      case "bigint":
        return value.toString();
      case "undefined":
        return undefined;
      case "object":
        return value === null ? "null" : this.writeObject(value, depth);
      default:
        throw new UnstorableValueError(`a ${typeof value} has no JSON form`);
    }
  }

  private writeObject(value: object, depth: number): string | undefined {
    if (depth >= DEEPEST) {
      throw new UnstorableValueError(
        `it is nested too deeply, or contains itself: a server takes ${DEEPEST} levels`,
      );
    }
    if (Array.isArray(value)) return this.writeList(value, depth);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return this.writeFields(value, depth);
    const simpler = this.simplify(value);
    return simpler === value ? this.writeFields(value, depth) : this.write(simpler, depth);
  }

  private writeList(list: readonly unknown[], depth: number): string {
    let text = "[";
    for (let index = 0; index < list.length; index++) {
      if (index > 0) text += ",";
      text += this.writePart(list[index], index, depth) ?? "null";
    }
    return `${text}]`;
  }

  private writeFields(fields: object, depth: number): string | undefined {
    const toJSON = (fields as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === "function") return this.write(toJSON.call(fields, ""), depth + 1);
    let text = "";
    for (const key of Object.keys(fields)) {
      const part = this.writePart((fields as Record<string, unknown>)[key], key, depth);
      if (part !== undefined) text += `${text && ","}${writeString(key)}:${part}`;
    }
    return `{${text}}`;
  }

  private writePart(value: unknown, key: string | number, depth: number): string | undefined {
    try {
      return this.write(value, depth + 1);
    } catch (error) {
      // A path of 128 keys of something that contains itself tells less than its beginning.
      if (error instanceof UnstorableValueError)
        throw depth < 8 ? error.inside(key) : new UnstorableValueError(error.problem);
      throw error;
    }
  }

  /** The next simpler form of an object that is not plain; the object itself when its fields are all. */
  private simplify(value: object): unknown {
    if (isMessage(value)) return toStoredMessage(value);
    const tagged = toTaggedForm(value);
    if (tagged !== undefined) return tagged;
    if (value instanceof Date) return writeDate(value);
    if (value instanceof Map) return this.contained("a Map", "Object.fromEntries(map)", () => [...value]);
    if (value instanceof Set) return this.contained("a Set", "[...set]", () => [...value]);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
      return this.contained(`a ${value.constructor.name}`, "text in base64", () => encodeBase64(value));
    }
    if (value instanceof RegExp) throw withoutForm("a RegExp", "its source");
    if (value instanceof Error) throw withoutForm(`an ${value.name}`, "its message");
    if (value instanceof Promise) throw new UnstorableValueError("a Promise has no JSON form: await it");
    if (isStream(value)) {
      throw new UnstorableValueError(
        "a stream has no JSON form: read it to its end, and write what it brought",
      );
    }
    if (value instanceof WeakMap || value instanceof WeakSet) throw withoutForm("a WeakMap", "plain objects");
    if (value instanceof Number || value instanceof String || value instanceof Boolean)
      return value.valueOf();
    return value;
  }

  private contained(what: string, instead: string, convert: () => unknown): unknown {
    if (this.containers) return convert();
    throw withoutForm(what, instead);
  }
}

/** What brings its parts one after another: a generator, an iterator, a stream of Node or of the web. */
export function isStream(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { next, getReader } = value as { next?: unknown; getReader?: unknown };
  if (Symbol.asyncIterator in value || typeof getReader === "function") return true;
  return Symbol.iterator in value && typeof next === "function";
}

function withoutForm(what: string, instead: string): UnstorableValueError {
  return new UnstorableValueError(
    `${what} does not come back as what it is: write ${instead}, or declare the key with a schema`,
  );
}

function writeString(text: string): string {
  if (!isWellFormed(text))
    throw new UnstorableValueError("the text has half a surrogate pair, which is no Unicode");
  return JSON.stringify(text);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}

function writeNumber(number: number): string {
  if (!Number.isFinite(number))
    throw new UnstorableValueError(`${number} has no JSON form: write null or a text`);
  return JSON.stringify(number);
}

function writeDate(date: Date): string {
  if (Number.isNaN(date.getTime())) throw new UnstorableValueError("an invalid Date has no JSON form");
  return date.toISOString();
}

/** Bytes as base64, without the classes of Node. */
export function encodeBase64(value: ArrayBuffer | ArrayBufferView): string {
  const bytes =
    value instanceof ArrayBuffer
      ? new Uint8Array(value)
      : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

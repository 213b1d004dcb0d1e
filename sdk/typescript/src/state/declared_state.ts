/** The keys of a state, whatever they are declared by. */
import {
  type BaseChannel,
  BinaryOperatorAggregate,
  type ChannelDeclaration,
  isChannel,
  LastValue,
} from "../channels/index.js";
import { decode, encode, mayHaveTags, restoreTagged, UnsafeNumberError } from "../codec/index.js";
import { ROOT } from "../constants.js";
import { InvalidUpdateError } from "../errors/index.js";
import { coerceMessages } from "../messages/coerced_message.js";
import { mayHaveMessages, restoreMessages } from "../messages/restored_message.js";
import { Command, isOverwrite, Send } from "../values/index.js";
import { type AnnotationRoot, channelOf } from "./annotation.js";
import { DeltaValue } from "./delta_value.js";
import { KeySchemas, parseByZod } from "./key_schemas.js";
import { readLegacyChannels } from "./legacy.js";
import { RepeatedText } from "./repeated_text.js";
import { createSchemaDecoder } from "./schema_values.js";
import { defaultOf, readField, StateSchema } from "./state_schema.js";
import { metaRegistry } from "./zod_registry.js";

/** One key: how values that are written to it are combined, stored and read. */
export class DeclaredKey {
  readonly declaration: ChannelDeclaration;
  private readonly fromSchema: ((value: unknown) => unknown) | undefined;

  constructor(
    readonly name: string,
    readonly channel: BaseChannel<any, any>,
    private readonly schemas: KeySchemas | undefined = undefined,
  ) {
    this.declaration = channel.declare();
    this.fromSchema = createSchemaDecoder(schemas?.value);
  }

  /** A schema says which values it has. */
  get hasSchema(): boolean {
    return this.schemas !== undefined;
  }

  /** It holds a list of messages, each with an id. */
  get hasMessages(): boolean {
    return this.declaration.reducer === "messages";
  }

  /** The value of stored JSON text. */
  read(text: string | RepeatedText): unknown {
    const value = this.decode(text);
    return this.fromSchema ? this.fromSchema(value) : value;
  }

  private decode(text: string | RepeatedText): unknown {
    try {
      return decodeValue(text, this.fromSchema !== undefined);
    } catch (error) {
      throw error instanceof UnsafeNumberError && this.name !== ROOT ? error.inside(this.name) : error;
    }
  }

  /** A value of the state, as it is read from text of the whole state. */
  restore(value: unknown): unknown {
    return this.fromSchema ? this.fromSchema(value) : value;
  }

  /** What is written, as the schema reads it, or a promise of that. Throws for what the schema does not take. */
  check(written: unknown): unknown {
    return this.schemas ? this.schemas.read(this.name, written) : written;
  }

  /** The JSON text of a value. */
  write(value: unknown): string {
    const plain = this.hasMessages && !isOverwrite(value) ? coerceMessages(value) : value;
    return encode(plain, { containers: this.hasSchema });
  }
}

/** A value of JSON text, with messages, commands and sends as objects. */
export function decodeValue(text: string | RepeatedText, hasSchema = false): unknown {
  const unsafe = hasSchema ? "bigint" : "error";
  if (text instanceof RepeatedText) return restoreValue(text.decode(unsafe), text.hasTags, text.hasMessages);
  return restoreValue(decode(text, { unsafe }), mayHaveTags(text), mayHaveMessages(text));
}

function restoreValue(decoded: unknown, hasTags: boolean, hasMessages: boolean): unknown {
  const value = hasTags ? restoreTagged(decoded, restoreTag) : decoded;
  return hasMessages ? restoreMessages(value) : value;
}

function restoreTag(kind: string, fields: Record<string, any>): unknown {
  if (kind === "send") return new Send(String(fields.node), fields.arg);
  if (kind === "command") return new Command(fields);
  return restoreMessages(fields);
}

/** The keys of a state. */
export class DeclaredState {
  readonly keys: ReadonlyMap<string, DeclaredKey>;

  constructor(
    /** What the program has declared it by. */
    readonly source: unknown,
    keys: Iterable<DeclaredKey>,
  ) {
    this.keys = new Map([...keys].map((key) => [key.name, key]));
  }

  /** The whole state is one value. */
  get isRoot(): boolean {
    return this.keys.size === 1 && this.keys.has(ROOT);
  }

  /** Keys have schemas that bring values back. */
  get hasSchemas(): boolean {
    return [...this.keys.values()].some(({ hasSchema }) => hasSchema);
  }
}

/** Reads what declares a state. TypeError says what is wrong with it. */
export function readState(source: unknown): DeclaredState {
  if (source instanceof DeclaredState) return source;
  return new DeclaredState(source, readKeys(source));
}

function readKeys(source: unknown): DeclaredKey[] {
  if (isAnnotationRoot(source)) return readDefinition(source.spec);
  if (StateSchema.isInstance(source)) {
    return Object.entries(source.fields).map(([name, field]) => {
      if (isChannel(field)) return new DeclaredKey(name, field, schemasOf(field));
      const { channel, schemas } = readField(field);
      return new DeclaredKey(name, channel, schemas);
    });
  }
  if (isZodObject(source))
    return Object.entries(shapeOf(source)).map(([name, part]) => readZodKey(name, part));
  if (typeof source === "object" && source !== null) return readDefinition(source);
  throw new TypeError(
    "StateGraph needs a state: Annotation.Root({ … }), a zod object, or { channels: { … } }",
  );
}

function schemasOf(channel: BaseChannel<any, any>): KeySchemas | undefined {
  return channel instanceof DeltaValue ? channel.schemas : undefined;
}

function isAnnotationRoot(value: unknown): value is AnnotationRoot<any> {
  return (value as { lc_graph_name?: unknown } | null | undefined)?.lc_graph_name === "AnnotationRoot";
}

function readDefinition(definition: object): DeclaredKey[] {
  return Object.entries(definition).map(([name, given]) => new DeclaredKey(name, channelOf(name, given)));
}

/** A state that is declared by `channels`. */
export function readLegacyState(channels: Record<string, unknown>): DeclaredState {
  const keys = Object.entries(readLegacyChannels(channels)).map(
    ([name, channel]) => new DeclaredKey(name, channel),
  );
  return new DeclaredState(channels, keys);
}

export function isZodObject(value: unknown): value is { shape: unknown } {
  if (typeof value !== "object" || value === null) return false;
  return ("_zod" in value || "_def" in value) && "shape" in value;
}

function shapeOf(schema: { shape: unknown }): Record<string, unknown> {
  return schema.shape as Record<string, unknown>;
}

function readZodKey(name: string, schema: unknown): DeclaredKey {
  const meta = metaRegistry.get(schema as object);
  const initial = meta?.default ?? defaultOf(schema);
  const channel = meta?.reducer
    ? new BinaryOperatorAggregate(meta.reducer.fn, initial)
    : new LastValue(initial);
  return new DeclaredKey(name, channel, new KeySchemas(parseByZod, schema, meta?.reducer?.schema));
}

/** The keys and values of an update, as pairs; of a state that is one value, that. */
export function readUpdate(
  update: unknown,
  state: ReadonlyMap<string, DeclaredKey> | undefined,
): [string, unknown][] {
  if (state?.has(ROOT)) return [[ROOT, update]];
  if (Array.isArray(update) && update.every(isPair)) return update as [string, unknown][];
  if (typeof update !== "object" || update === null || Array.isArray(update)) {
    throw new InvalidUpdateError(`Expected object with keys of the state, got ${describe(update)}`, {
      lc_error_code: "INVALID_GRAPH_NODE_RETURN_VALUE",
    });
  }
  return Object.entries(update).filter(([key, value]) => value !== undefined && (state?.has(key) ?? true));
}

/** What is written to keys, as their schemas read it. Throws for what they do not take. */
export async function checkWrites(
  writes: [string, unknown][],
  keys: ReadonlyMap<string, DeclaredKey>,
): Promise<[string, unknown][]> {
  if (!writes.some(([name]) => keys.get(name)?.hasSchema)) return writes;
  return await Promise.all(
    writes.map(async ([name, value]): Promise<[string, unknown]> => {
      const key = keys.get(name);
      return [name, key ? await key.check(value) : value];
    }),
  );
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "string";
}

function describe(value: unknown): string {
  return Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
}

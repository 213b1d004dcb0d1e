/** A state declared by schemas of its keys: zod, or any schema of the Standard Schema. */
import {
  type BaseChannel,
  BinaryOperatorAggregate,
  LastValue,
  type Reducer,
  UntrackedValueChannel,
} from "../channels/index.js";
import type { OverwriteValue } from "../values/index.js";
import { KeySchemas, parseByStandard } from "./key_schemas.js";
import { isStandardSchema, type StandardSchema } from "./standard_schema.js";

type OutputOf<S> = S extends StandardSchema<any, infer O> ? O : never;
type InputOf<S> = S extends StandardSchema<infer I, any> ? I : never;

/** A key whose writes a reducer combines. */
export class ReducedValue<Value = any, Update = Value> {
  declare readonly ValueType: Value;
  declare readonly InputType: Update;
  readonly inputSchema: StandardSchema | undefined;
  readonly reducer: Reducer<any, any>;

  constructor(
    valueSchema: StandardSchema<any, Value>,
    options: {
      inputSchema: StandardSchema<any, Update>;
      reducer: Reducer<Value, Update>;
      jsonSchemaExtra?: Record<string, unknown>;
    },
  );
  constructor(
    valueSchema: StandardSchema<any, Value>,
    options: { reducer: Reducer<Value, Value>; jsonSchemaExtra?: Record<string, unknown> },
  );
  constructor(
    readonly valueSchema: StandardSchema,
    options: { inputSchema?: StandardSchema; reducer: Reducer<any, any> },
  ) {
    this.reducer = options.reducer;
    this.inputSchema = options.inputSchema;
  }

  static isInstance(value: unknown): value is ReducedValue {
    return value instanceof ReducedValue;
  }
}

/** A key that is not stored with the checkpoints. */
export class UntrackedValue<Value = any> {
  declare readonly ValueType: Value;

  constructor(
    readonly schema?: StandardSchema<any, Value>,
    readonly options: { guard?: boolean } = {},
  ) {}

  static isInstance(value: unknown): value is UntrackedValue {
    return value instanceof UntrackedValue;
  }
}

export type StateSchemaFields = Record<
  string,
  ReducedValue | UntrackedValue | StandardSchema | BaseChannel<any, any>
>;

type FieldValue<F> =
  F extends ReducedValue<infer V, any>
    ? V
    : F extends UntrackedValue<infer V>
      ? V
      : F extends BaseChannel<infer V, any>
        ? V
        : OutputOf<F>;
type FieldUpdate<F> =
  F extends ReducedValue<infer V, infer U>
    ? U | OverwriteValue<V>
    : F extends UntrackedValue<infer V>
      ? V
      : F extends BaseChannel<infer V, infer U>
        ? U | OverwriteValue<V>
        : InputOf<F> | OverwriteValue<OutputOf<F>>;

/** The keys of a state, each with its schema. `State` and `Update` are types only. */
export class StateSchema<F extends StateSchemaFields> {
  readonly lc_graph_name = "StateSchema";
  declare readonly State: { [K in keyof F]: FieldValue<F[K]> };
  declare readonly Update: { [K in keyof F]?: FieldUpdate<F[K]> };
  declare readonly Node: (state: StateSchema<F>["State"], config?: any) => any;

  constructor(readonly fields: F) {}

  static isInstance(value: unknown): value is StateSchema<StateSchemaFields> {
    return (value as { lc_graph_name?: unknown } | null | undefined)?.lc_graph_name === "StateSchema";
  }
}

/** The channel and the schemas of a field. */
export function readField(field: unknown): {
  channel: BaseChannel<any, any>;
  schemas: KeySchemas | undefined;
} {
  if (ReducedValue.isInstance(field)) {
    const { valueSchema, inputSchema, reducer } = field;
    return {
      channel: new BinaryOperatorAggregate(reducer, defaultOf(valueSchema)),
      schemas: new KeySchemas(parseByStandard, valueSchema, inputSchema),
    };
  }
  if (UntrackedValue.isInstance(field)) {
    return { channel: new UntrackedValueChannel(), schemas: schemasOf(field.schema) };
  }
  if (!isStandardSchema(field))
    throw new TypeError("a field of a StateSchema must be a schema, like z.string()");
  return { channel: new LastValue(defaultOf(field)), schemas: schemasOf(field) };
}

function schemasOf(schema: StandardSchema | undefined): KeySchemas | undefined {
  return schema && new KeySchemas(parseByStandard, schema);
}

/** The default of a schema: what it makes of nothing; `undefined` when it takes nothing. */
export function defaultOf(schema: unknown): (() => unknown) | undefined {
  const made = parseNothing(schema);
  return made === undefined ? undefined : () => parseNothing(schema);
}

function parseNothing(schema: unknown): unknown {
  if (!isStandardSchema(schema)) return undefined;
  const result = schema["~standard"].validate(undefined) as { value?: unknown; issues?: unknown };
  return result instanceof Promise || result.issues ? undefined : result.value;
}

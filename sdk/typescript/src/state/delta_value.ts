import { DeltaChannel, type DeltaReducer } from "../channels/index.js";
import { KeySchemas, parseByStandard } from "./key_schemas.js";
import type { StandardSchema } from "./standard_schema.js";
import { defaultOf } from "./state_schema.js";

export type DeltaValueInit<Value = unknown, Input = Value> = {
  inputSchema?: StandardSchema<any, Input>;
  reducer: DeltaReducer<Value, Input>;
  /** The server stores every value whole. */
  snapshotFrequency?: number;
  jsonSchemaExtra?: Record<string, unknown>;
};

/** A key of a `StateSchema` whose reducer gets all writes of a superstep at once. */
export class DeltaValue<Value = any, Input = Value> extends DeltaChannel<Value, Input> {
  declare readonly InputType: Input;
  readonly inputSchema: StandardSchema | undefined;
  /** They check what is written. */
  readonly schemas: KeySchemas;

  constructor(
    valueSchema: StandardSchema<any, Value>,
    options: DeltaValueInit<Value, Input> & { inputSchema: StandardSchema<any, Input> },
  );
  constructor(valueSchema: StandardSchema<any, Value>, options: DeltaValueInit<Value, Value>);
  constructor(
    readonly valueSchema: StandardSchema,
    options: DeltaValueInit<any, any>,
  ) {
    const initial = defaultOf(valueSchema);
    super(options.reducer, initial && { initialValueFactory: initial as () => Value });
    this.inputSchema = options.inputSchema;
    this.schemas = new KeySchemas(parseByStandard, valueSchema, options.inputSchema);
  }

  static isInstance(value: unknown): value is DeltaValue {
    return value instanceof DeltaValue;
  }
}

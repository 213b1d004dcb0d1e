/** The names under which LangGraph.js programs spell out types of states. */
import type { BaseChannel } from "../channels/index.js";
import type { AnnotationRoot } from "./annotation.js";
import type { StandardSchema } from "./standard_schema.js";
import type { StateSchema, StateSchemaFields } from "./state_schema.js";
import type { StateDefinition, StateInput, StateOf, StateType, UpdateOf, UpdateType } from "./types.js";

type IsAny<T> = 0 extends 1 & T ? true : false;

/** What nodes read of what declares a state; a type that declares none stands for itself. */
export type ExtractStateType<T> = IsAny<T> extends true ? any : StateOf<T>;
/** What nodes write of it. */
export type ExtractUpdateType<T, Base = T> =
  IsAny<T> extends true ? any : [T] extends [StateInput] ? UpdateOf<T> : UpdateOf<Base>;

/** What declares a state, an input or an output. */
export type StateDefinitionInit = StateInput;
/** What declares a context. */
export type ContextSchemaInit = StandardSchema | AnnotationRoot<any>;

type ValuesOf<T> = T extends { readonly State: infer S } ? S : StateOf<T>;
type WritesOf<T, K> = T extends { readonly Update: infer U } ? (K extends keyof U ? U[K] : never) : never;

/** The channels of what declares a state. */
export type ToStateDefinition<T> =
  T extends AnnotationRoot<infer SD>
    ? SD
    : T extends StateDefinition
      ? T
      : { [K in keyof ValuesOf<T>]: BaseChannel<ValuesOf<T>[K], WritesOf<T, K>> };

/** A node, as `typeof State.Node` is one. */
export type NodeType<SD extends StateDefinition> = (
  state: StateType<SD>,
  config?: any,
) => UpdateType<SD> | Promise<UpdateType<SD>>;

export type AnyStateSchema = StateSchema<any>;
export type StateSchemaField<Input = any, Output = Input> =
  | StateSchemaFields[string]
  | StandardSchema<Input, Output>;
export type InferStateSchemaValue<F extends StateSchemaFields> = StateSchema<F>["State"];
export type InferStateSchemaUpdate<F extends StateSchemaFields> = StateSchema<F>["Update"];
export type StateSchemaFieldToChannel<F extends StateSchemaFields[string]> =
  StateSchemaFieldsToStateDefinition<{
    field: F;
  }>["field"];
export type StateSchemaFieldsToStateDefinition<F extends StateSchemaFields> = ToStateDefinition<
  StateSchema<F>
>;
/** The options of a `ReducedValue`. */
export type ReducedValueInit<Value = unknown, Input = Value> = {
  inputSchema?: StandardSchema<any, Input>;
  reducer: (current: Value, update: Input) => Value;
  jsonSchemaExtra?: Record<string, unknown>;
};
export type UntrackedValueInit = { guard?: boolean };

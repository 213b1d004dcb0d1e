export { Annotation, type AnnotationFunction, AnnotationRoot } from "./annotation.js";
export * from "./declared_state.js";
export { DeltaValue, type DeltaValueInit } from "./delta_value.js";
export type * from "./extracted_types.js";
export type { AnyLegacyChannels, LegacyChannel, LegacyChannels, LegacyState } from "./legacy.js";
export * from "./messages.js";
export * from "./messages_value.js";
export { RepeatedText } from "./repeated_text.js";
export { isStandardSchema, type StandardSchema } from "./standard_schema.js";
export {
  ReducedValue,
  StateSchema,
  type StateSchemaFields,
  UntrackedValue,
} from "./state_schema.js";
export type * from "./types.js";
export { MetaRegistry, metaRegistry, withLangGraph, type ZodMeta } from "./zod_registry.js";

export { Annotation, type AnnotationFunction, AnnotationRoot } from "./annotation.js";
export * from "./declared_state.js";
export type { AnyLegacyChannels, LegacyChannel, LegacyChannels, LegacyState } from "./legacy.js";
export * from "./messages.js";
export type { StandardSchema } from "./standard_schema.js";
export {
  ReducedValue,
  StateSchema,
  type StateSchemaFields,
  UntrackedValue,
} from "./state_schema.js";
export type * from "./types.js";
export { metaRegistry, withLangGraph, type ZodMeta } from "./zod_registry.js";

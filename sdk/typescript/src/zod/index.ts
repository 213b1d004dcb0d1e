/** States declared by zod objects: reducers and defaults beside the types. */
import type { $ZodRegistry } from "zod/v4/core";
import { MetaRegistry, metaRegistry, type ZodMeta } from "../state/index.js";

/** The metadata of schemas: `z.array(…).register(registry, { reducer: { fn } })`. */
export const registry: $ZodRegistry<ZodMeta> = metaRegistry as unknown as $ZodRegistry<ZodMeta>;

export {
  MessagesZodMeta,
  withLangGraph,
  type ZodMeta,
  type ZodMeta as SchemaMeta,
} from "../state/index.js";
export { MessagesZodState } from "./messages_state.js";
/** The same registry, under its other names. */
export { MetaRegistry as SchemaMetaRegistry, metaRegistry as schemaMetaRegistry };

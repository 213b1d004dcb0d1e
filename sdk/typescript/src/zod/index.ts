/** States declared by zod objects: reducers and defaults beside the types. */
import type { $ZodRegistry } from "zod/v4/core";
import { metaRegistry, type ZodMeta } from "../state/index.js";

/** The metadata of schemas: `z.array(…).register(registry, { reducer: { fn } })`. */
export const registry: $ZodRegistry<ZodMeta> = metaRegistry as unknown as $ZodRegistry<ZodMeta>;

export { MessagesZodMeta, withLangGraph, type ZodMeta } from "../state/index.js";
export { MessagesZodState } from "./messages_state.js";

/** What zod schemas of a state are said to be besides their types: reducers, defaults, JSON Schema. */
import type { Reducer } from "../channels/index.js";
import type { StandardSchema } from "./standard_schema.js";
import type { WrittenAs } from "./types.js";

type OutputOf<S> = S extends StandardSchema<any, infer O> ? O : any;

export type ZodMeta<Value = any, Update = any> = {
  /** Combines what is written; `schema` says what may be written. */
  reducer?: { fn: Reducer<Value, Update>; schema?: StandardSchema<any, Update> };
  default?: () => Value;
  jsonSchemaExtra?: Record<string, unknown>;
  langgraph_type?: string;
};

/** Remembers the metadata of schemas. It has the methods of the registries of zod 4. */
export class MetaRegistry {
  private readonly metas = new WeakMap<object, ZodMeta>();

  add(schema: object, meta: ZodMeta = {}): this {
    this.metas.set(schema, meta);
    return this;
  }

  get(schema: object): ZodMeta | undefined {
    return this.metas.get(schema);
  }

  has(schema: object): boolean {
    return this.metas.has(schema);
  }

  remove(schema: object): this {
    this.metas.delete(schema);
    return this;
  }

  clear(): this {
    throw new TypeError("the registry of LangGraph is not cleared: remove single schemas");
  }
}

const KEY = Symbol.for("graphd.zod_registry");
const shared = globalThis as { [KEY]?: MetaRegistry };

/** One for all copies of this package in the process. */
shared[KEY] ??= new MetaRegistry();
export const metaRegistry: MetaRegistry = shared[KEY];

/** Says how a key of a zod state is combined. Returns the schema. */
export function withLangGraph<S extends object, Update>(
  schema: S,
  meta: ZodMeta<OutputOf<S>, Update> & { reducer: object },
): WrittenAs<S, Update>;
export function withLangGraph<S extends object>(schema: S, meta: ZodMeta): S;
export function withLangGraph(schema: object, meta: ZodMeta): object {
  metaRegistry.add(schema, meta);
  return schema;
}

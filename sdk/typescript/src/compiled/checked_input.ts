/** Inputs of graphs whose states are zod objects: checked before the server is asked. */
import type { Program } from "../declare/index.js";
import { isZodObject, metaRegistry } from "../state/index.js";
import { isOverwrite } from "../values/index.js";

type Parser = { parse(value: unknown): unknown };

/** The input, as its schemas read it. They throw for what they do not take. */
export function checkInput(program: Program, input: unknown): unknown {
  const { source } = program.builder.schemas.input;
  if (!isZodObject(source) || typeof input !== "object" || input === null) return input;
  const shape = source.shape as Record<string, Parser | undefined>;
  return Object.fromEntries(Object.entries(input).map(([key, value]) => [key, readKey(shape[key], value)]));
}

function readKey(schema: Parser | undefined, value: unknown): unknown {
  if (schema === undefined || value === undefined || isOverwrite(value)) return value;
  const meta = metaRegistry.get(schema);
  if (meta?.reducer === undefined) return schema.parse(value);
  const written = meta.reducer.schema as Parser | undefined;
  return written ? written.parse(value) : value;
}

/** The shape of an answer: the JSON Schema that people are shown, and what a node gets. */
import { encode } from "../codec/index.js";

type Parsed = { success: boolean; data?: unknown; error?: { message: string; issues?: Issue[] } };
type Issue = { path: readonly unknown[]; message: string };
type Schema = {
  toJSONSchema?: () => unknown;
  safeParse?: (value: unknown) => Parsed;
  "~standard"?: { jsonSchema?: { input(options: { target: string }): unknown } };
};

/** A schema of the program does not take the answer. */
export class RefusedAnswer extends Error {}

export class ResponseSchema {
  constructor(
    /** JSON text of the JSON Schema; none takes any answer. */
    readonly text: string | undefined,
    private readonly parser: ((value: unknown) => Parsed) | undefined,
  ) {}

  /** The answer as the node gets it; `RefusedAnswer` when the schema does not take it. */
  readAnswer(answer: unknown): unknown {
    const result = this.parser?.(answer);
    if (result === undefined) return answer;
    if (result.success) return result.data;
    throw new RefusedAnswer(describe(result.error));
  }
}

function describe(error: Parsed["error"]): string {
  const issues = error?.issues ?? [];
  if (issues.length === 0) return error?.message ?? "it is not what the schema says";
  return issues.map(({ path, message }) => `${path.join(".") || "the answer"}: ${message}`).join("; ");
}

/** Reads the `responseSchema` of a question: a JSON Schema, or a schema of zod. */
export function readResponseSchema(given: unknown): ResponseSchema {
  if (given === undefined || given === null) return new ResponseSchema(undefined, undefined);
  const schema = given as Schema;
  if (typeof schema.safeParse !== "function") return new ResponseSchema(encode(given), undefined);
  return new ResponseSchema(writeJsonSchema(schema), (value) => schema.safeParse?.(value) as Parsed);
}

/** The JSON Schema of a zod schema, where its version has one; without one the answer is checked here alone. */
function writeJsonSchema(schema: Schema): string | undefined {
  const made = schema.toJSONSchema?.() ?? schema["~standard"]?.jsonSchema?.input({ target: "draft-2020-12" });
  return made === undefined ? undefined : encode(made);
}

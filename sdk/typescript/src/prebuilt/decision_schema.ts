/** What a person may decide about a call of a tool, as a JSON Schema. */
export type DecisionType = "approve" | "edit" | "reject" | "respond";

type Json = Record<string, unknown>;

/** What a decision has beside its type. */
const MAY_HAVE: Record<DecisionType, string[]> = {
  approve: [],
  edit: ["args", "name"],
  reject: ["message"],
  respond: ["message"],
};
const MUST_HAVE: Partial<Record<DecisionType, string[]>> = { edit: ["args"], respond: ["message"] };

/**
 * The schema of decisions about a call. All fields are in one object, and conditions say which belong to a type, so
 * that a violation names its place.
 */
export function buildDecisionSchema(allowed: readonly DecisionType[], tool: string, args: Json): Json {
  const fields: Record<string, Json> = {
    args: { description: "The arguments to use", ...embed(args, "#/properties/args") },
    name: { const: tool, description: "The tool, which can't be changed" },
    message: { type: "string", description: "What the model is told" },
  };
  const used = Object.entries(fields).filter(([name]) =>
    allowed.some((kind) => MAY_HAVE[kind].includes(name)),
  );
  const ordered = [...allowed].sort((one, other) => Number(other === "edit") - Number(one === "edit"));
  const [first, ...others] = ordered.map(buildCondition);
  return {
    type: "object",
    required: ["type"],
    properties: { type: { enum: [...allowed] }, ...Object.fromEntries(used) },
    additionalProperties: false,
    ...first,
    ...(others.length > 0 ? { allOf: others } : {}),
  };
}

function buildCondition(kind: DecisionType): Json {
  const fields = ["type", ...MAY_HAVE[kind]].map((name) => [name, true]);
  const required = MUST_HAVE[kind];
  return {
    if: { properties: { type: { const: kind } }, required: ["type"] },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: {
      properties: Object.fromEntries(fields),
      additionalProperties: false,
      ...(required === undefined ? {} : { required }),
    },
  };
}

/** The schema as a part of another one: what refers to a part of it finds it there. */
function embed(schema: Json, at: string): Json {
  if ("$id" in schema) return schema; // references in it are its own
  const { $schema: _, ...rest } = moveReferences(schema, at) as Json;
  return rest;
}

function moveReferences(part: unknown, at: string): unknown {
  if (Array.isArray(part)) return part.map((one) => moveReferences(one, at));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => {
      const isLocal = key === "$ref" && typeof value === "string" && value.startsWith("#");
      return [key, isLocal ? at + value.slice(1) : moveReferences(value, at)];
    }),
  );
}

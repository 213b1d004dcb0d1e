/** Stored values that come back as the schema of their key declares them. */
import { afterEach, describe, expect, test } from "vitest";
import * as zod4 from "zod";
import * as zod3 from "zod/v3";
import { MemorySaver, START, StateGraph, StateSchema } from "../../src/index.js";

const detached: (() => void)[] = [];

afterEach(() => {
  for (const detach of detached.splice(0)) detach();
});

/** What a node reads of a value that the node before has written. */
async function readBack(state: unknown, written: unknown): Promise<unknown> {
  let read: unknown;
  const graph = new StateGraph<any>(state as any)
    .addNode("write", () => ({ k: written }))
    .addNode("read", (given: any) => {
      read = given.k;
      return {};
    })
    .addEdge(START, "write")
    .addEdge("write", "read")
    .compile({ checkpointer: new MemorySaver() });
  detached.push(() => void graph.detach());
  await graph.invoke({ begun: true }, { configurable: { thread_id: "restored" } });
  return read;
}

const when = new Date(1);
const text = when.toISOString();

describe.each([
  ["zod 4", zod4],
  ["zod 3", zod3 as unknown as typeof zod4],
])("a key of %s", (_, z) => {
  const stateOf = (schema: unknown) => z.object({ k: schema as any, begun: z.boolean().optional() });

  test.each([
    ["what comes out of a pipe", z.string().pipe(z.coerce.date()).optional(), text, when],
    [
      "what is prepared first",
      z.preprocess((v) => v && new Date(v as string), z.date().optional()),
      text,
      when,
    ],
    [
      "what a function makes, and another schema reads",
      z
        .string()
        .transform((v) => new Date(v))
        .pipe(z.date())
        .optional(),
      text,
      when,
    ],
    [
      "both sides of an intersection",
      z.intersection(z.object({ a: z.date() }), z.object({ b: z.date() })).optional(),
      { a: when, b: when },
      { a: when, b: when },
    ],
    [
      "keys that an object does not declare",
      z.object({ a: z.string() }).catchall(z.date()).optional(),
      { a: text, b: when },
      { a: text, b: when },
    ],
    [
      "an object that a function has changed",
      z
        .object({ a: z.date() })
        .transform((v) => ({ ...v, b: 1 }))
        .optional(),
      { a: when },
      { a: when, b: 1 },
    ],
  ])("restores %s", async (_name, schema, written, expected) => {
    expect(await readBack(stateOf(schema), written)).toEqual(expected);
  });
});

test("restores what a codec decodes", async () => {
  const isoDate = zod4.codec(zod4.string(), zod4.date(), {
    decode: (value) => new Date(value),
    encode: (value) => value.toISOString(),
  });
  expect(await readBack(zod4.object({ k: isoDate.optional(), begun: zod4.any() }), text)).toEqual(when);
});

test("reads a union whose options check asynchronously", async () => {
  const later = zod4
    .union([zod4.string().refine(async () => true), zod4.object({ a: zod4.date() })])
    .optional();
  const state = new StateSchema({ k: later, begun: zod4.boolean().optional() });
  expect(await readBack(state, { a: when })).toEqual({ a: when });
  expect(await readBack(state, "x")).toBe("x");
});

/** Values of the state that JSON does not hold as they are. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Annotation, Command, interrupt, MemorySaver, START, StateGraph } from "../../src/index.js";

const Plain = Annotation.Root({ value: Annotation<unknown>, read: Annotation<unknown> });

async function write(value: unknown): Promise<unknown> {
  const graph = new StateGraph(Plain)
    .addNode("write", () => ({ value }))
    .addNode("look", (state) => ({ read: state.value }))
    .addEdge(START, "write")
    .addEdge("write", "look")
    .compile();
  return (await graph.invoke({})).read;
}

describe("values", () => {
  test("a Map is refused, with what to write in its place", async () => {
    await expect(write(new Map([["a", 1]]))).rejects.toThrow(/value: a Map .* Object\.fromEntries\(map\)/);
    await expect(write({ list: [new Set([1])] })).rejects.toThrow(/value\.list\[0\]: a Set .* \[\.\.\.set\]/);
  });

  test("a Map in a question is refused, too", async () => {
    const graph = new StateGraph(Plain)
      .addNode("ask", () => ({ read: interrupt(new Map()) }))
      .addEdge(START, "ask")
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "1" } };
    await expect(graph.invoke({}, config)).rejects.toThrow(/Object\.fromEntries/);
  });

  test("no number is lost", async () => {
    await expect(write(Number.NaN)).rejects.toThrow(/value: NaN has no JSON form/);
    await expect(write(2n ** 60n)).rejects.toThrow(/^value: 1152921504606846976 .*z\.bigint/);
    await expect(write({ list: [2n ** 60n] })).rejects.toThrow(/^value\.list\[0\]: 1152921504606846976 /);
    expect(await write(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("undefined is not written", async () => {
    expect(await write({ a: undefined, b: [undefined] })).toEqual({ b: [null] });
  });

  test("schemas bring values back as they declare them", async () => {
    const Typed = z.object({
      big: z.bigint().default(0n),
      when: z.date().optional(),
      scores: z.map(z.string(), z.bigint()).optional(),
      tags: z.set(z.string()).optional(),
      seen: z.string().default(""),
    });
    const graph = new StateGraph(Typed)
      .addNode("write", () => ({
        big: 2n ** 60n,
        when: new Date(0),
        scores: new Map([["a", 1n]]),
        tags: new Set(["x"]),
      }))
      .addNode("look", ({ big, when, scores, tags }) => ({
        seen: `${big + 1n} ${when?.getTime()} ${scores?.get("a")} ${tags?.has("x")}`,
      }))
      .addEdge(START, "write")
      .addEdge("write", "look")
      .compile();
    const result = await graph.invoke({});
    expect(result.seen).toBe("1152921504606846977 0 1 true");
    expect(result).toMatchObject({ big: 2n ** 60n, when: new Date(0), tags: new Set(["x"]) });
  });

  test("a zod state checks what comes in", async () => {
    const graph = new StateGraph(z.object({ q: z.string() }))
      .addNode("n", ({ q }) => ({ q: `${q}!` }))
      .addEdge(START, "n")
      .compile();
    expect(await graph.invoke({ q: "hi" })).toEqual({ q: "hi!" });
    await expect(graph.invoke({ q: 1 as never })).rejects.toThrow(/expected string/);
  });

  test("what a node changes in its state is changed for it alone", async () => {
    const State = Annotation.Root({ list: Annotation<number[]>, other: Annotation<number> });
    const graph = new StateGraph(State)
      .addNode("n", (state) => {
        state.list.push(2);
        return { other: 1 };
      })
      .addEdge(START, "n")
      .compile();
    expect(await graph.invoke({ list: [1] })).toEqual({ list: [1], other: 1 });
  });

  test("a command without anything is refused", async () => {
    const graph = new StateGraph(Plain)
      .addNode("n", () => ({}))
      .addEdge(START, "n")
      .compile();
    await expect(graph.invoke(undefined as never)).rejects.toThrow(/undefined/);
    await expect(graph.invoke(new Command({}))).rejects.toThrow();
  });
});

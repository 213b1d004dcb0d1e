/** Graphs that can't be compiled say which nodes they have. */
import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { Annotation, messagesStateReducer, START, StateGraph } from "../src/index.js";

const State = Annotation.Root({ amount: Annotation<number> });

function buildGraph() {
  return new StateGraph(State)
    .addNode("check", () => ({}))
    .addNode("pay", () => ({}))
    .addEdge(START, "check");
}

describe("an unknown node", () => {
  test("at the end of an edge", () => {
    const graph = buildGraph().addEdge("check", "payy" as "pay");
    expect(() => graph.compile()).toThrow(
      'an edge leads to the unknown node "payy" from "check"; the graph has the nodes "check", "pay"',
    );
  });

  test("at the beginning of an edge", () => {
    const graph = buildGraph().addEdge("chekc" as "check", "pay");
    expect(() => graph.compile()).toThrow(
      'an edge begins at the unknown node "chekc"; the graph has the nodes "check", "pay"',
    );
  });

  test("at the end of a condition", () => {
    const graph = buildGraph().addConditionalEdges("check", () => "pay" as const, ["payy" as "pay"]);
    expect(() => graph.compile()).toThrow(
      /"check" leads to the unknown node "payy"; the graph has the nodes "check", "pay"$/,
    );
  });
});

describe("a default", () => {
  function compileWith(key: z.ZodType) {
    return new StateGraph(z.object({ key, n: z.number() }))
      .addNode("work", () => ({}))
      .addEdge(START, "work")
      .compile();
  }

  test.each([
    ["a UUID", z.string().default(() => crypto.randomUUID())],
    ["the time", z.date().default(() => new Date())],
    ["the time as a text", z.string().default(() => new Date().toISOString())],
    ["the time as a number", z.object({ at: z.number() }).default(() => ({ at: Date.now() }))],
  ])("that is %s is refused", (_name, key) => {
    expect(() => compileWith(key)).toThrow('the default of "key" is another one each time');
  });

  test.each([
    ["a list", z.array(z.string()).default(() => [])],
    ["a moment", z.date().default(() => new Date(0))],
    ["a map", z.map(z.string(), z.date()).default(() => new Map([["a", new Date(0)]]))],
  ])("that is %s is taken", (_name, key) => {
    compileWith(key);
  });

  test("of messages is taken", () => {
    const messages = Annotation<BaseMessage[], BaseMessage[]>({
      reducer: messagesStateReducer as never,
      default: () => [new SystemMessage("Be brief")],
    });
    new StateGraph(Annotation.Root({ messages }))
      .addNode("work", () => ({}))
      .addEdge(START, "work")
      .compile();
  });

  test("of an annotation that is another one each time is refused", () => {
    const id = Annotation<string, string>({ reducer: (_, b) => b, default: () => crypto.randomUUID() });
    const graph = new StateGraph(Annotation.Root({ id })).addNode("work", () => ({})).addEdge(START, "work");
    expect(() => graph.compile()).toThrow('the default of "id" is another one each time');
  });
});

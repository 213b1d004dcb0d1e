/** Graphs that can't be compiled say which nodes they have. */
import { describe, expect, test } from "vitest";
import { Annotation, START, StateGraph } from "../src/index.js";

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

import { describe, expect, test } from "vitest";
import { Annotation, Command, END, interrupt, MemorySaver, START, StateGraph } from "../../src/index.js";

const State = Annotation.Root({
  n: Annotation<number>,
  log: Annotation<string[], string | string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

describe("a graph", () => {
  test("runs to its end without a checkpointer", async () => {
    const graph = new StateGraph(State)
      .addNode("one", (state) => ({ n: state.n + 1, log: "one" }))
      .addNode("two", async () => ({ log: ["two"] }))
      .addEdge(START, "one")
      .addEdge("one", "two")
      .addEdge("two", END)
      .compile();
    expect(await graph.invoke({ n: 1 })).toEqual({ n: 2, log: ["one", "two"] });
    const values: unknown[] = [];
    for await (const chunk of await graph.stream({ n: 1 }, { streamMode: "values" })) values.push(chunk);
    expect(values).toEqual([
      { n: 1, log: [] },
      { n: 2, log: ["one"] },
      { n: 2, log: ["one", "two"] },
    ]);
    const updates: unknown[] = [];
    for await (const chunk of await graph.stream({ n: 1 })) updates.push(chunk);
    expect(updates).toEqual([{ one: { n: 2, log: "one" } }, { two: { log: ["two"] } }]);
  });

  test("asks, and goes on with the answer", async () => {
    const passes: string[] = [];
    const graph = new StateGraph(State)
      .addNode("ask", () => {
        passes.push("begun");
        const answer: string = interrupt({ question: "go on?" });
        return { log: answer };
      })
      .addEdge(START, "ask")
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "1" } };
    const asked = await graph.invoke({ n: 1 }, config);
    expect(asked).toMatchObject({ n: 1, log: [], __interrupt__: [{ value: { question: "go on?" } }] });
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ n: 1, log: ["yes"] });
    expect(passes).toEqual(["begun", "begun"]);
    expect((await graph.getState(config)).values).toEqual({ n: 1, log: ["yes"] });
  });
});

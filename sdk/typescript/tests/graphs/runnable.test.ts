/** Compiled graphs as runnables of LangChain, and states of `StateSchema` with what LangGraph.js brings for them. */
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda, RunnableSequence } from "@langchain/core/runnables";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  Annotation,
  DeltaValue,
  InMemoryCache,
  interrupt,
  MemorySaver,
  MessagesDeltaValue,
  MessagesValue,
  messagesDeltaReducer,
  Send,
  START,
  StateGraph,
  StateSchema,
  writer,
} from "../../src/index.js";
import { startServer } from "../server.js";

const started = startServer();
const State = Annotation.Root({ n: Annotation<number> });

function countingGraph(server?: string) {
  return new StateGraph(State)
    .addNode("add", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "add")
    .compile({ server });
}

describe("a compiled graph", () => {
  test("is a part of a chain", async () => {
    const graph = countingGraph(started.server.address);
    const piped = graph.pipe(({ n }) => n * 10).pipe(new RunnableLambda({ func: (n: number) => `${n}` }));
    expect(await piped.invoke({ n: 1 })).toBe("20");
    const chain = RunnableSequence.from([(n: number) => ({ n }), graph, (state: { n: number }) => -state.n]);
    expect(await chain.invoke(1)).toBe(-2);
    const chunks: unknown[] = [];
    for await (const chunk of await RunnableLambda.from((n: number) => ({ n }))
      .pipe(graph)
      .stream(1)) {
      chunks.push(chunk);
    }
    expect(chunks).toEqual([{ add: { n: 2 } }]);
    await graph.detach();
  });

  test("takes no stream as an input", async () => {
    const graph = countingGraph(started.server.address);
    const parts = async function* () {
      yield { n: 1 };
      yield { n: 2 };
    };
    await expect(graph.invoke(parts() as never)).rejects.toThrow("the input is a stream: read it to its end");
    const chunks: unknown[] = [];
    for await (const chunk of graph.transform(parts())) chunks.push(chunk);
    expect(chunks).toEqual([{ add: { n: 4 } }]);
    await graph.detach();
  });

  test("refuses to lead to what is no step", () => {
    expect(() => countingGraph().pipe(1 as never)).toThrow("pipe takes a function or a runnable, not number");
  });

  test("runs a batch", async () => {
    let [most, now] = [0, 0];
    const graph = new StateGraph(State)
      .addNode("add", async ({ n }) => {
        if (n === 9) throw new RangeError("nine");
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 20));
        now--;
        return { n: n + 1 };
      })
      .addEdge(START, "add")
      .compile({ server: started.server.address });
    const options = [1, 2, 3].map((no) => ({ metadata: { no } }));
    const inputs = [{ n: 1 }, { n: 2 }, { n: 3 }];
    expect(await graph.batch(inputs, options, { maxConcurrency: 1 })).toEqual([{ n: 2 }, { n: 3 }, { n: 4 }]);
    expect(most).toBe(1);
    await expect(graph.batch([{ n: 9 }])).rejects.toThrow("nine");
    expect(await graph.batch([{ n: 9 }, { n: 1 }], {}, { returnExceptions: true })).toEqual([
      expect.any(RangeError),
      { n: 2 },
    ]);
    await expect(graph.batch(inputs, [{}])).rejects.toThrow("batch has 3 inputs and 1 objects of options");
    await graph.detach();
  });

  test("shows its subgraphs", () => {
    const inner = countingGraph();
    const middle = new StateGraph(State).addNode("in", inner).addEdge(START, "in").compile();
    const outer = new StateGraph(State)
      .addNode("x", middle)
      .addNode("y", () => ({}), { subgraphs: [inner] })
      .addNode("z", () => ({}))
      .addEdge(START, "x")
      .addEdge("x", "y")
      .addEdge("y", "z")
      .compile();
    const names = (namespace?: string, recurse?: boolean) =>
      [...outer.getSubgraphs(namespace, recurse)].map(([name]) => name);
    expect(names()).toEqual(["x", "y"]);
    expect(names(undefined, true)).toEqual(["x", "x|in", "y"]);
    expect(names("x", true)).toEqual(["x"]);
    expect(names("x|in")).toEqual([]);
    expect(names("x|in", true)).toEqual(["x|in"]);
    expect([...outer.getSubgraphs("x|in", true)][0]?.[1]).toBe(inner);
    expect(outer.validate()).toBe(outer);
    expect(outer.lc_namespace).toEqual(["langgraph", "pregel"]);
    expect(() => new StateGraph(State).addNode("a", () => ({})).validate()).toThrow(
      "no edge leads from START",
    );
  });

  test("forgets the results of its nodes", async () => {
    const cache = new InMemoryCache();
    let runs = 0;
    const compile = (name: string) =>
      new StateGraph(State)
        .addNode("add", ({ n }) => ({ n: n + ++runs }), { cachePolicy: true })
        .addEdge(START, "add")
        .compile({ server: started.server.address, cache, name });
    const [one, other] = [compile("cached-one"), compile("cached-other")];
    for (const graph of [one, other, one, other]) await graph.invoke({ n: 1 });
    expect(runs).toBe(2);
    await one.clearCache();
    for (const graph of [one, other]) await graph.invoke({ n: 1 });
    expect(runs).toBe(3);
    await countingGraph().clearCache();
    await Promise.all([one.detach(), other.detach()]);
  });

  test("has the types of what it asks and writes", async () => {
    const graph = new StateGraph(State, {
      interrupt: { sure: interrupt<string, number> },
      writer: writer<{ step: number }>,
    })
      .addNode("ask", (_state, config) => {
        config.writer({ step: 1 });
        return { n: interrupt<string, number>("sure?") };
      })
      .addEdge(START, "ask")
      .compile({ checkpointer: new MemorySaver({ server: started.server.address }) });
    expect(graph.builder.schemas.context).toBeUndefined();
    const asked = await graph.invoke({ n: 1 }, { configurable: { thread_id: "typed" } });
    expect(graph.isInterrupted(asked) && asked.__interrupt__[0]?.value).toBe("sure?");
    await graph.detach();
  });
});

describe("a StateSchema", () => {
  test.each([MessagesValue, MessagesDeltaValue])(
    "has messages, and a list that gets all writes at once",
    async (messages) => {
      const Schema = new StateSchema({
        messages,
        calls: new DeltaValue(
          z.array(z.string()).default(() => []),
          { inputSchema: z.string(), reducer: (all, writes) => [...all, writes.join("+")] },
        ),
      });
      const graph = new StateGraph(Schema)
        .addNode("split", () => ({ messages: { role: "assistant", content: "two" } }))
        .addNode("call", ({ tool }: { tool: string }) => ({ calls: tool, messages: [new AIMessage(tool)] }))
        .addEdge(START, "split")
        .addConditionalEdges("split", () => ["a", "b"].map((tool) => new Send("call", { tool })), ["call"])
        .compile({ server: started.server.address });
      const { messages: merged, calls } = await graph.invoke({ messages: "one" });
      expect(merged.map(({ content }) => content)).toEqual(["one", "two", "a", "b"]);
      expect(merged[1]).toBeInstanceOf(AIMessage);
      expect(calls).toEqual(["a+b"]);
      await expect(graph.invoke({ calls: 1 as never })).rejects.toThrow(/calls: /);
      await graph.detach();
    },
  );

  test("merges writes of messages as its reducer does", () => {
    const first = new HumanMessage({ content: "a", id: "1" });
    const merged = messagesDeltaReducer([first], [[new HumanMessage({ content: "b", id: "1" })], "c"]);
    expect(merged.map(({ content }) => content)).toEqual(["b", "c"]);
  });
});

/** How graphs lead from node to node: routers, commands, sends, subgraphs, failures. */
import { AIMessage, HumanMessage, isAIMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { describe, expect, test } from "vitest";
import {
  Annotation,
  Command,
  END,
  GraphDrained,
  getWriter,
  InMemoryStore,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  RunControl,
  Send,
  START,
  StateGraph,
  UnreachableNodeError,
} from "../../src/index.js";

const State = Annotation.Root({
  log: Annotation<string[], string | string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const saver = new MemorySaver();
let threads = 0;

function newThread() {
  return { configurable: { thread_id: `flow ${threads++}` } };
}

async function collect(chunks: Promise<AsyncIterable<unknown>>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const chunk of await chunks) found.push(chunk);
  return found;
}

describe("flow", () => {
  test.each([
    [() => "nowhere", ["b", END], 'returned "nowhere": want one of b, __end__, or a Send'],
    [() => undefined, ["b", END], "returned undefined: want one of b, __end__, or a Send"],
    [() => null, undefined, "returned null: want a node, END or a Send"],
  ])("a router that leads nowhere says what would be right", async (route, paths, problem) => {
    const graph = new StateGraph(State)
      .addNode("a", () => ({ log: "a" }))
      .addNode("b", () => ({ log: "b" }))
      .addEdge(START, "a")
      .addConditionalEdges("a", route as never, paths as never)
      .compile();
    await expect(graph.invoke({})).rejects.toThrow(`the condition "condition" after node "a" ${problem}`);
  });

  test("routers lead to nodes, to sends and to the end", async () => {
    const graph = new StateGraph(State)
      .addNode("a", () => ({ log: "a" }))
      .addNode("b", (state) => ({ log: `b saw ${JSON.stringify(state)}` }))
      .addEdge(START, "a")
      .addConditionalEdges("a", () => [new Send("b", { item: 1 }), new Send("b", { item: 2 })], ["b"])
      .addConditionalEdges("b", () => "over", { over: END })
      .compile();
    expect(await graph.invoke({})).toEqual({ log: ["a", 'b saw {"item":1}', 'b saw {"item":2}'] });
  });

  test("a command writes and leads on", async () => {
    const graph = new StateGraph(State)
      .addNode("a", () => new Command({ update: { log: "a" }, goto: "c" }), { ends: ["c"] })
      .addNode("c", () => ({ log: "c" }))
      .addEdge(START, "a")
      .compile();
    expect(await graph.invoke({})).toEqual({ log: ["a", "c"] });
  });

  test("mistakes are found before the server is asked", () => {
    const builder = new StateGraph(State).addNode("a", () => ({}));
    expect(() => builder.compile()).toThrow(/START/);
    builder.addEdge(START, "a").addNode("lonely", () => ({}));
    expect(() => builder.compile()).toThrow(UnreachableNodeError);
    expect(() => builder.addNode("log", () => ({}))).toThrow(/key of the state/);
    expect(() => builder.addNode("a|b", () => ({}))).toThrow(/not allowed/);
    expect(() => builder.addNode("a", () => ({}))).toThrow(/already there/);
  });

  test("a subgraph asks, and its namespace shows", async () => {
    const child = new StateGraph(State)
      .addNode("inner", () => ({ log: interrupt("inside?") as string }))
      .addEdge(START, "inner")
      .compile();
    const graph = new StateGraph(State)
      .addNode("outer", child)
      .addEdge(START, "outer")
      .compile({ checkpointer: saver });
    const config = newThread();
    const asked = await collect(graph.stream({}, { ...config, subgraphs: true }));
    expect(asked).toContainEqual([
      [expect.stringMatching(/^outer:/)],
      { __interrupt__: [expect.objectContaining({ value: "inside?" })] },
    ]);
    const state = await graph.getState(config, { subgraphs: true });
    expect(state.tasks[0]).toMatchObject({ name: "outer", state: { next: ["inner"] } });
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ log: ["yes"] });
  });

  test("a node calls a graph, whose question pauses it", async () => {
    let passes = 0;
    const child = new StateGraph(State)
      .addNode("inner", () => ({ log: interrupt("called?") as string }))
      .addEdge(START, "inner")
      .compile({ name: "called" });
    const graph = new StateGraph(State)
      .addNode("caller", async () => {
        passes++;
        const { log } = await child.invoke({ log: ["given"] });
        return { log: log.map((line) => `child: ${line}`) };
      })
      .addEdge(START, "caller")
      .compile({ checkpointer: saver });
    const config = newThread();
    await graph.invoke({}, config);
    const result = await graph.invoke(new Command({ resume: "yes" }), config);
    expect(result).toEqual({ log: ["child: given", "child: yes"] });
    expect(passes).toBe(2);
  });

  test("a retry repeats what may pass, and an error handler takes the rest", async () => {
    let tries = 0;
    const graph = new StateGraph(State)
      .addNode(
        "flaky",
        () => {
          if (++tries < 3) throw new Error("not yet");
          return { log: `try ${tries}` };
        },
        { retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false } },
      )
      .addNode(
        "broken",
        () => {
          throw new TypeError("for good");
        },
        { errorHandler: (_state, failure) => ({ log: `${failure.node}: ${failure.error.message}` }) },
      )
      .addEdge(START, "flaky")
      .addEdge("flaky", "broken")
      .compile();
    expect(await graph.invoke({})).toEqual({ log: ["try 3", "broken: for good"] });
  });

  test("the caller gets the very error that a node has thrown", async () => {
    const thrown = Object.assign(new Error("mine"), { extra: 1 });
    const graph = new StateGraph(State)
      .addNode("bad", () => {
        throw thrown;
      })
      .addEdge(START, "bad")
      .compile();
    await expect(graph.invoke({})).rejects.toBe(thrown);
  });

  test("a timeout ends a node, and its signal says so", async () => {
    let isAborted = false;
    const graph = new StateGraph(State)
      .addNode(
        "slow",
        (_state, config) =>
          new Promise<{ log: string }>((_, reject) => {
            config.signal?.addEventListener("abort", () => {
              isAborted = true;
              reject(new Error("stopped"));
            });
          }),
        { timeout: 50 },
      )
      .addEdge(START, "slow")
      .compile();
    await expect(graph.invoke({})).rejects.toMatchObject({ name: "NodeTimeoutError", node: "slow" });
    expect(isAborted).toBe(true);
  });

  test("nodes write events, and see the context and the store", async () => {
    const store = new InMemoryStore();
    const graph = new StateGraph(State)
      .addNode("n", async (_state, config) => {
        getWriter()?.({ progress: 1 });
        await config.store?.put(["users"], "alice", { seen: true });
        return { log: `${config.context?.user} ${config.configurable?.tenant}` };
      })
      .addEdge(START, "n")
      .compile({ store });
    const options = {
      context: { user: "alice" },
      configurable: { tenant: "t1" },
      streamMode: ["custom", "values"] as const,
    };
    expect(await collect(graph.stream({ log: [] }, options))).toEqual([
      ["values", { log: [] }],
      ["custom", { progress: 1 }],
      ["values", { log: ["alice t1"] }],
    ]);
    expect((await store.get(["users"], "alice"))?.value).toEqual({ seen: true });
  });

  test("messages come back as messages, and the tokens of models show", async () => {
    const model = new FakeListChatModel({ responses: ["Hey"] });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("model", async (state) => {
        if (!(state.messages[0] instanceof HumanMessage)) throw new TypeError("no message");
        return { messages: await model.invoke(state.messages) };
      })
      .addEdge(START, "model")
      .compile();
    const pieces: string[] = [];
    const input = { messages: [{ role: "user", content: "hi" }] };
    for await (const [message, metadata] of await graph.stream(input, { streamMode: "messages" })) {
      if (isAIMessage(message)) pieces.push(String(message.content));
      expect(metadata.langgraph_node).toBe("model");
    }
    expect(pieces.filter(Boolean)).toEqual(["H", "e", "y"]);
    const { messages } = await graph.invoke(input);
    expect(messages.map((message) => message instanceof AIMessage)).toEqual([false, true]);
    expect(messages[0]?.id).toMatch(/.+/);
  });

  test("states are read, written and gone back to", async () => {
    const graph = new StateGraph(State)
      .addNode("a", () => ({ log: "a" }))
      .addNode("b", () => ({ log: "b" }))
      .addEdge(START, "a")
      .addEdge("a", "b")
      .compile({ checkpointer: saver, interruptBefore: ["b"] });
    const config = newThread();
    expect(await graph.invoke({}, config)).toEqual({ log: ["a"], __interrupt__: [] });
    await graph.updateState(config, { log: "by hand" }, "a");
    expect((await graph.getState(config)).next).toEqual(["b"]);
    expect(await graph.invoke(null, config)).toEqual({ log: ["a", "by hand", "b"] });
    const history = [];
    for await (const state of graph.getStateHistory(config)) history.push(state.values);
    expect(history.at(0)).toEqual({ log: ["a", "by hand", "b"] });
    expect(history.length).toBe(5);
  });

  test("a node that wrote nothing of what shows is told as in LangGraph.js", async () => {
    const graph = new StateGraph(Annotation.Root({ a: Annotation<number>, b: Annotation<number> }))
      .addNode("one", () => ({ a: 1 }))
      .addNode("two", () => ({ b: 2 }))
      .addNode("three", () => ({}))
      .addEdge(START, "one")
      .addEdge("one", "two")
      .addEdge("two", "three")
      .compile({ checkpointer: saver });
    const config = newThread();
    expect(await collect(graph.stream({}, { ...config, outputKeys: ["b"] }))).toEqual([
      { one: {} },
      { two: { b: 2 } },
      { three: {} },
    ]);
    expect(await collect(graph.stream({}, { ...newThread(), outputKeys: "b" }))).toEqual([
      {},
      { two: 2 },
      {},
    ]);
    const results = [];
    for await (const { tasks } of graph.getStateHistory(config))
      for (const task of tasks) results.push([task.name, task.result]);
    expect(results).toEqual([
      ["three", undefined],
      ["two", { b: 2 }],
      ["one", { a: 1 }],
      ["__start__", undefined],
    ]);
  });

  test("a run that its program asks to stop stops after a superstep", async () => {
    const control = new RunControl();
    const Count = Annotation.Root({ n: Annotation<number> });
    // It would go on for ever.
    const graph = new StateGraph(Count)
      .addNode("a", ({ n }) => {
        if (n === 3) control.requestDrain("deploy");
        return { n: n + 1 };
      })
      .addEdge(START, "a")
      .addEdge("a", "a")
      .compile({ checkpointer: saver });
    const config = { ...newThread(), recursionLimit: 1_000_000 };
    await expect(graph.invoke({ n: 0 }, { ...config, control })).rejects.toMatchObject({
      name: "GraphDrained",
      reason: "deploy",
    });
    expect((await graph.getState(config)).next).toEqual(["a"]);
    await expect(graph.invoke(null, { ...config, control })).rejects.toThrow(GraphDrained);
  });

  test("the graph draws itself", () => {
    const graph = new StateGraph(State)
      .addNode("a", () => ({}))
      .addNode("b", () => ({}))
      .addEdge(START, "a")
      .addConditionalEdges("a", () => "b", { yes: "b", no: END })
      .compile();
    const text = graph.getGraph().drawMermaid();
    expect(text).toContain("__start__ --> a;");
    expect(text).toMatch(/a -\. &nbsp;yes&nbsp; \.-> b;/);
    expect(text).toContain("b --> __end__;");
  });
});

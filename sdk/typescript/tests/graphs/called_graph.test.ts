/** Graphs, models and tools that a node calls, with its config or without. */
import { setTimeout } from "node:timers/promises";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  Annotation,
  GraphRecursionError,
  type LangGraphRunnableConfig,
  MemorySaver,
  NodeTimeoutError,
  START,
  StateGraph,
} from "../../src/index.js";

const State = Annotation.Root({ n: Annotation<number>, told: Annotation<unknown> });
const saver = new MemorySaver();
let threads = 0;

function newThread() {
  return { configurable: { thread_id: `called ${threads++}` } };
}

/** A graph whose only node tells what a function returns. */
function buildTelling(tell: (config: LangGraphRunnableConfig) => unknown) {
  return new StateGraph(State)
    .addNode("tell", async (_state, config) => ({ told: await tell(config as LangGraphRunnableConfig) }))
    .addEdge(START, "tell")
    .compile({ checkpointer: saver });
}

async function collect(chunks: Promise<AsyncIterable<unknown>>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const chunk of await chunks) found.push(chunk);
  return found;
}

describe("the config of a node", () => {
  const called = new StateGraph(State)
    .addNode("add", ({ n }) => ({ n: n + 1 }))
    .addNode("last", () => ({ told: "last" }))
    .addEdge(START, "add")
    .addEdge("add", "last")
    .compile();
  const graph = buildTelling((config) => called.invoke({ n: 1 }, config));
  const told = { n: 2, told: "last" };

  test.each([
    { streamMode: "updates" as const },
    { streamMode: ["values", "updates"] as const },
    { outputKeys: ["told"] },
    { outputKeys: "told" },
  ])("leaves out what a call says of itself: %o", async (options) => {
    const thread = newThread();
    await collect(graph.stream({}, { ...thread, ...options } as never));
    expect((await graph.getState(thread)).values.told).toEqual(told);
  });

  test("gives models ids and names of their own", async () => {
    const model = new FakeListChatModel({ responses: ["a"] });
    const seen: unknown[] = [];
    const handler = {
      handleChatModelStart: (...given: unknown[]) => void seen.push(given[2], given[7]),
    };
    const runId = crypto.randomUUID();
    const asking = buildTelling(async (config) => {
      await Promise.all([model.invoke("x", config as never), model.invoke("y", config as never)]);
    });
    await asking.invoke({}, { ...newThread(), runId, runName: "outer", callbacks: [handler] });
    expect(new Set(seen).size).toBe(3); // two ids and no name
    expect(seen).not.toContain(runId);
    expect(seen).not.toContain("outer");
  });
});

test.each(["nostream", "langsmith:nostream"])("a model with the tag %s shows no tokens", async (tag) => {
  const model = new FakeListChatModel({ responses: ["hello"] }).withConfig({ tags: [tag] });
  const graph = buildTelling(async (config) => void (await model.invoke("x", config as never)));
  expect(await collect(graph.stream({}, { ...newThread(), streamMode: "messages" }))).toEqual([]);
});

describe("the timeout of a call", () => {
  const slow = buildTelling(async ({ signal }) => await setTimeout(30_000, "late", { signal }));

  test("ends invoke and stream", async () => {
    const options = () => ({ ...newThread(), timeout: 100 });
    await expect(slow.invoke({}, options())).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(collect(slow.stream({}, options()))).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(slow.withConfig({ timeout: 100 }).invoke({}, newThread())).rejects.toThrow("timeout");
  });

  test("leaves the signal of the call alone", async () => {
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(slow.invoke({}, { ...newThread(), timeout: 10_000, signal })).rejects.toThrow("too late");
  });

  test("ends the call of a node, which goes on", async () => {
    const called = buildTelling(async ({ signal }) => await setTimeout(2_000, "late", { signal }));
    const quick = buildTelling(() => "instead");
    for (const options of [() => ({ timeout: 100 }), () => ({ signal: AbortSignal.timeout(100) })]) {
      const graph = buildTelling(async () => {
        const error = await called.invoke({}, options()).catch((thrown: Error) => thrown.name);
        return [error, (await quick.invoke({})).told];
      });
      expect((await graph.invoke({}, newThread())).told).toEqual(["TimeoutError", "instead"]);
    }
  });

  test("is above 0", async () => {
    await expect(slow.invoke({}, { ...newThread(), timeout: 0 })).rejects.toThrow("timeout must be");
  });
});

test("the error handler of a node that took too long gets a NodeTimeoutError", async () => {
  const graph = new StateGraph(State)
    .addNode("slow", async () => await setTimeout(1_000, {}), {
      timeout: 100,
      errorHandler: (_state, { error }) => ({ told: error instanceof NodeTimeoutError }),
    })
    .addEdge(START, "slow")
    .compile();
  expect((await graph.invoke({})).told).toBe(true);
});

describe("a graph that fails in a node", () => {
  class OutOfStock extends Error {}

  function build(action: () => unknown) {
    return new StateGraph(z.object({ n: z.number() }))
      .addNode("fail", action as never)
      .addEdge(START, "fail");
  }

  /** What a node catches that calls a graph. */
  async function caught(called: { invoke(input: any, config: object): Promise<unknown> }): Promise<any> {
    const errors: unknown[] = [];
    const call = () => called.invoke({ n: 1 }, { recursionLimit: 3 }).catch((error) => errors.push(error));
    await buildTelling(call).invoke({}, newThread());
    return errors[0];
  }

  test("throws the very error of its node", async () => {
    const error = new OutOfStock("none left");
    const fail = () => {
      throw error;
    };
    expect(await caught(build(fail).compile())).toBe(error);
    expect(await caught(build(() => ({ n: "x" })).compile())).toBeInstanceOf(z.ZodError);
    const wrong = await caught(build(() => 5).compile());
    expect(wrong).toMatchObject({ lc_error_code: "INVALID_GRAPH_NODE_RETURN_VALUE" });
  });

  test("throws a GraphRecursionError when it does not end", async () => {
    const error = await caught(
      build(() => ({}))
        .addEdge("fail" as never, "fail" as never)
        .compile(),
    );
    expect(error).toBeInstanceOf(GraphRecursionError);
    expect(error.message).toContain("Recursion limit of 3");
  });
});

/** What stops a node or a run, what of it is kept, and what is left alone. */
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  Annotation,
  type CompiledStateGraph,
  GraphDrained,
  MemorySaver,
  RunControl,
  START,
  StateGraph,
} from "../../src/index.js";

const State = Annotation.Root({
  log: Annotation<string[], string | string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const saver = new MemorySaver();
let threads = 0;

function newThread() {
  return { configurable: { thread_id: `stopping ${threads++}` } };
}

function createBarrier() {
  let lift = () => {};
  const whenLifted = new Promise<void>((resolve) => {
    lift = resolve;
  });
  return { whenLifted, lift };
}

/** A node that waits until the test lets it go on. */
function createGate() {
  const { whenLifted: entered, lift: enter } = createBarrier();
  const { whenLifted: opened, lift: open } = createBarrier();
  const pass = async () => {
    enter();
    await opened;
  };
  return { entered, open, pass };
}

describe("stopping", () => {
  test("what a node still does after its sibling has failed is kept, and is not done again", async () => {
    const payments: string[] = [];
    let isMended = false;
    const graph = new StateGraph(State)
      .addNode("pay", async () => {
        await setTimeout(500);
        payments.push("10 EUR");
        return { log: "paid" };
      })
      .addNode("fail", () => {
        if (!isMended) throw new Error("broken");
        return { log: "mended" };
      })
      .addEdge(START, "pay")
      .addEdge(START, "fail")
      .compile({ checkpointer: saver });
    const thread = newThread();
    await expect(graph.invoke({}, thread)).rejects.toThrow("broken");
    isMended = true;
    expect((await graph.invoke(null, thread)).log.sort()).toEqual(["mended", "paid"]);
    expect(payments).toEqual(["10 EUR"]);
  });

  test("a node that heeds its signal ends at once", async () => {
    const graph = new StateGraph(State)
      .addNode("wait", async (_state, { signal }) => {
        await setTimeout(60_000, undefined, { signal });
        return {};
      })
      .addNode("fail", () => {
        throw new Error("broken");
      })
      .addEdge(START, "wait")
      .addEdge(START, "fail")
      .compile({ checkpointer: saver });
    const thread = newThread();
    await expect(graph.invoke({}, thread)).rejects.toThrow("broken");
    const { tasks } = await graph.getState(thread);
    expect(tasks.find(({ name }) => name === "wait")?.error).toMatchObject({ name: "AbortError" });
  });

  test("a call that is aborted before it begins starts nothing, and stops no run of another", async () => {
    const { entered, open, pass } = createGate();
    const graph = waitingGraph(pass);
    const thread = newThread();
    const running = graph.invoke({}, thread);
    await entered;
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(graph.invoke({ log: "second" }, { ...thread, signal })).rejects.toThrow("too late");
    open();
    expect(await running).toEqual({ log: ["waited"] });
  });

  test("a call that is aborted while another has the thread stops no run of it", async () => {
    const { entered, open, pass } = createGate();
    const graph = waitingGraph(pass);
    const thread = newThread();
    const running = graph.invoke({}, thread);
    await entered;
    const leaving = new AbortController();
    const second = graph.invoke({ log: "second" }, { ...thread, signal: leaving.signal });
    leaving.abort(new Error("left"));
    await expect(second).rejects.toThrow();
    open();
    expect(await running).toEqual({ log: ["waited"] });
  });

  test("an aborted call has ended when it throws, and goes on with what its nodes have done", async () => {
    const { entered, open, pass } = createGate();
    const graph = waitingGraph(pass);
    const thread = newThread();
    const leaving = new AbortController();
    const call = graph.invoke({}, { ...thread, signal: leaving.signal });
    await entered;
    leaving.abort(new Error("left"));
    await expect(call).rejects.toThrow("left");
    open();
    expect(await graph.invoke(null, thread)).toEqual({ log: ["waited"] });
  });

  test("an input that comes when the program is about to stop is kept for later", async () => {
    const graph = waitingGraph(async () => {});
    const thread = newThread();
    const control = new RunControl();
    control.requestDrain("early");
    await expect(graph.invoke({ log: "in" }, { ...thread, control })).rejects.toThrow(GraphDrained);
    expect((await graph.getState(thread)).next).toEqual([START]);
    expect(await graph.invoke(null, thread)).toEqual({ log: ["in", "waited"] });
  });
});

function waitingGraph(pass: () => Promise<void>): CompiledStateGraph<{ log: string[] }> {
  return new StateGraph(State)
    .addNode("wait", async () => {
      await pass();
      return { log: "waited" };
    })
    .addEdge(START, "wait")
    .compile({ checkpointer: saver }) as never;
}

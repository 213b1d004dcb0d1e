import { afterAll, expect, test } from "vitest";
import {
  Annotation,
  Command,
  interrupt,
  isGraphdError,
  START,
  StateGraph,
  ThreadBusyError,
} from "../src/index.js";
import { createClient } from "../src/node.js";
import { startServer } from "./server.js";

const started = startServer();

const State = Annotation.Root({
  log: Annotation<string[], string>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

/** A promise and what resolves it. */
function createGate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** A graph that asks, and whose next node works until its gate is opened. */
function buildSlowGraph(name: string) {
  const begun = createGate();
  const gate = createGate();
  const graph = new StateGraph(State)
    .addNode("ask", () => ({ log: interrupt<string, string>("go?") }))
    .addNode("work", async () => {
      begun.open();
      await gate.opened;
      return { log: "worked" };
    })
    .addEdge(START, "ask")
    .addEdge("ask", "work")
    .compile({ server: started.server.address, name });
  afterAll(() => graph.detach());
  return { graph, begun: begun.opened, finish: gate.open };
}

async function collect(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("a call without an input joins the run that is active", async () => {
  const { graph, begun, finish } = buildSlowGraph("joined");
  const config = { configurable: { thread_id: "joined" } };
  await graph.invoke({}, config);
  const first = graph.invoke(new Command({ resume: "yes" }), config);
  await begun;
  const joined = graph.invoke(null, config);
  const streamed = graph.stream(null, { ...config, streamMode: "values" }).then(collect);
  const breakpoints = graph.invoke(null, { ...config, interruptAfter: ["work"] });
  await expect(breakpoints).rejects.toThrow(ThreadBusyError);
  const refused = await graph.invoke(new Command({ resume: "no" }), config).catch((error: unknown) => error);
  expect(isGraphdError(refused)).toBe(true);
  expect(String(refused)).toContain("invoke(null");
  await expect(graph.invoke({ log: "more" }, config)).rejects.toThrow(/invoke\(null/);
  finish();
  const end = { log: ["yes", "worked"] };
  expect(await first).toEqual(end);
  expect(await joined).toEqual(end);
  expect((await streamed).at(-1)).toEqual(end);
  expect(await graph.invoke(null, config)).toEqual(end); // nothing is left
});

test("who joins a run and leaves does not stop it", async () => {
  const { graph, begun, finish } = buildSlowGraph("left");
  const config = { configurable: { thread_id: "left" } };
  await graph.invoke({}, config);
  const first = graph.invoke(new Command({ resume: "yes" }), config);
  await begun;
  const leaving = new AbortController();
  const joined = graph.invoke(null, { ...config, signal: leaving.signal });
  const streamed = graph.stream(null, { ...config, signal: leaving.signal }).then(collect);
  setTimeout(() => leaving.abort(), 50);
  await expect(joined).rejects.toThrow(/abort/i);
  await expect(streamed).rejects.toThrow(/abort/i);
  finish();
  expect(await first).toEqual({ log: ["yes", "worked"] });
});

test("a client joins a run of another program, and gets what it fails with", async () => {
  const begun = createGate();
  const gate = createGate();
  const graph = new StateGraph(State)
    .addNode("fail", async () => {
      begun.open();
      await gate.opened;
      throw new TypeError("no such order");
    })
    .addEdge(START, "fail")
    .compile({ server: started.server.address, name: "failing" });
  const config = { configurable: { thread_id: "failing" } };
  const first = graph.invoke({}, config);
  first.catch(() => {});
  await begun.opened;
  const client = createClient(started.server.address);
  const joined = client.invoke("failing", null, config);
  joined.catch(() => {});
  gate.open();
  await expect(first).rejects.toThrow("no such order");
  await expect(joined).rejects.toThrow("no such order");
  client.close();
  await graph.detach();
});

test("nodes see nothing of a call that has joined their run", async () => {
  const begun = createGate();
  const gate = createGate();
  let seen: unknown;
  const graph = new StateGraph(State)
    .addNode("first", async () => {
      begun.open();
      await gate.opened;
      return {};
    })
    .addNode("second", (_, { context, configurable, tags }) => {
      seen = { context, user: configurable?.user, tags };
      return { log: "worked" };
    })
    .addEdge(START, "first")
    .addEdge("first", "second")
    .compile({ server: started.server.address, name: "seen" });
  await graph.connect();
  const client = createClient(started.server.address);
  const config = { configurable: { thread_id: "seen", user: "joined" }, tags: ["joined"] };
  await client.start("seen", {}, { threadId: "seen", context: { who: "client" } });
  await begun.opened;
  const joined = graph.invoke(null, { ...config, context: { who: "joined" } });
  await expect(graph.invoke({ log: "more" }, config)).rejects.toThrow(ThreadBusyError);
  gate.open();
  expect(await joined).toEqual({ log: ["worked"] });
  expect(seen).toEqual({ context: { who: "client" }, user: undefined, tags: [] });
  client.close();
  await graph.detach();
});

test("a node does not join its own run by a client", async () => {
  const client = createClient(started.server.address);
  let problem: unknown;
  const graph = new StateGraph(State)
    .addNode("work", async () => {
      problem = await client
        .invoke("joins-itself", null, { threadId: "joins-itself" })
        .catch((error) => error);
      return { log: "worked" };
    })
    .addEdge(START, "work")
    .compile({ server: started.server.address, name: "joins-itself" });
  const end = await graph.invoke({}, { configurable: { thread_id: "joins-itself" } });
  expect(problem).toBeInstanceOf(ThreadBusyError);
  expect(end).toEqual({ log: ["worked"] });
  client.close();
  await graph.detach();
});

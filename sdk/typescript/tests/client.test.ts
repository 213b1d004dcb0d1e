import { beforeAll, describe, expect, test } from "vitest";
import { Client } from "../src/client/index.js";
import {
  ConflictError,
  EmptyInputError,
  GraphRecursionError,
  InvalidGraphError,
  InvalidResumeError,
  NotFoundError,
  NothingToResumeError,
} from "../src/errors/index.js";
import { createClient } from "../src/node.js";
import { Command } from "../src/values/index.js";
import { COUNT, REFUND } from "./graph_documents.js";
import { startRelay } from "./relay.js";
import { startServer } from "./server.js";

const started = startServer();
let client: Client;

beforeAll(async () => {
  client = new Client(started.caller);
  await client.putGraph(REFUND);
  await client.putGraph(COUNT);
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const approve = new Command({ resume: { decision: "approved" } });

describe("runs", () => {
  test("invoke shows the question, and its answer goes on", async () => {
    const config = { configurable: { thread_id: "invoke" } };
    const asked = await client.invoke("refund", { request: "10 EUR" }, config);
    expect(asked).toEqual({
      request: "10 EUR",
      log: ["read 10 EUR"],
      __interrupt__: [
        {
          id: expect.stringMatching(/^[0-9a-f]{32}$/),
          value: { request: "10 EUR" },
          response_schema: expect.objectContaining({ required: ["decision"] }),
        },
      ],
    });
    const byId = new Command({ resume: { [asked.__interrupt__[0].id]: { decision: "approved" } } });
    expect(await client.invoke("refund", byId, config)).toEqual({
      request: "10 EUR",
      decision: "approved",
      log: ["read 10 EUR", "review", "closed: approved"],
    });
    await expect(client.invoke("refund", approve, config)).rejects.toThrow(NothingToResumeError);
    await expect(client.invoke("refund", null, config)).resolves.toMatchObject({ decision: "approved" });
  });

  test("a stream in the shapes of LangGraph.js", async () => {
    const config = { configurable: { thread_id: "stream" } };
    const first = await collect(
      client.stream("refund", { request: "a" }, { ...config, streamMode: ["updates", "values"] }),
    );
    const question = { id: expect.any(String), value: { request: "a" }, response_schema: expect.anything() };
    expect(first).toEqual([
      ["values", { request: "a", log: [] }],
      ["updates", { read: { log: ["read a"] } }],
      ["values", { request: "a", log: ["read a"] }],
      ["updates", { __interrupt__: [question] }],
      ["values", { __interrupt__: [question] }],
    ]);
    expect(await collect(client.stream("refund", approve, config))).toEqual([
      { review: { decision: "approved", log: ["review"] } },
      { close: { log: ["closed: approved"] } },
    ]);
  });

  test("tasks and checkpoints", async () => {
    const items = await collect(
      client.stream("count", { left: 1 }, { streamMode: ["tasks", "checkpoints"] }),
    );
    const id = expect.any(String);
    expect(items.filter(([mode]) => mode === "tasks").map(([, data]) => data)).toEqual([
      { id, name: "step", input: { left: 1, log: [] }, triggers: expect.any(Array), interrupts: [] },
      { id, name: "step", error: null, result: { left: 0, log: [1] }, interrupts: [] },
    ]);
    expect(
      items.filter(([mode]) => mode === "checkpoints").map(([, data]) => [data.metadata.source, data.next]),
    ).toEqual([
      ["input", ["__start__"]],
      ["loop", ["step"]],
      ["loop", []],
    ]);
  });

  test("chosen keys, and breakpoints", async () => {
    const config = { configurable: { thread_id: "chosen" }, interruptBefore: ["close"], outputKeys: ["log"] };
    await client.invoke("refund", { request: "b" }, config);
    const items = await collect(
      client.stream("refund", approve, { ...config, streamMode: ["updates", "values"] }),
    );
    expect(items.at(-1)).toEqual(["values", { __interrupt__: [] }]);
    expect(items).toContainEqual(["values", { log: ["read b", "review"] }]);
    expect(await client.invoke("refund", null, { ...config, interruptBefore: [] })).toEqual({
      log: ["read b", "review", "closed: approved"],
    });
  });

  test("a run begins later", async () => {
    const run = await client.start("count", { left: 1 }, { threadId: "later", beginAfter: 300 });
    expect(run.state).toBe("queued");
    expect(Number(run.beginsAt) - Number(run.createdAt)).toBe(300);
    expect((await client.wait("later", run.runId)).state).toBe("succeeded");
    await expect(client.start("count", {}, { beginAfter: 0 })).rejects.toThrow(/milliseconds above 0/);
  });

  test("a run that fails throws what it failed with", async () => {
    const run = client.invoke("count", { left: 9 }, { recursionLimit: 3 });
    await expect(run).rejects.toThrow(GraphRecursionError);
    await expect(run).rejects.toMatchObject({ lc_error_code: "GRAPH_RECURSION_LIMIT" });
    await expect(collect(client.stream("count", { left: 9 }, { recursionLimit: 3 }))).rejects.toThrow(
      /limit of 3/,
    );
    await expect(client.invoke("count", { left: 1 }, { recursionLimit: 0 })).rejects.toThrow(/at least 1/);
    await expect(client.invoke("refund", null, { threadId: "never" })).rejects.toThrow(EmptyInputError);
    await expect(client.invoke("none", {})).rejects.toThrow(NotFoundError);
  });

  test("an aborted signal cancels the run", async () => {
    const left = new AbortController();
    const threadId = "aborted";
    const stream = client.stream(
      "count",
      { left: 9000 },
      { threadId, signal: left.signal, recursionLimit: 9999 },
    );
    await stream.next();
    left.abort();
    await expect(collect(stream)).rejects.toMatchObject({ name: "AbortError" });
    expect((await client.wait(threadId)).state).toBe("cancelled");
  });

  test("start goes on with a run by an answer", async () => {
    const threadId = "answered by start";
    const asked = await client.invoke("refund", { request: "d" }, { threadId });
    await expect(client.start("refund", new Command({ resume: "no" }), { threadId })).rejects.toThrow(
      InvalidResumeError,
    );
    const byId = new Command({ resume: { [asked.__interrupt__[0].id]: { decision: "approved" } } });
    const { runId } = await client.start("refund", byId, { threadId });
    expect((await client.wait(threadId, runId)).state).toBe("succeeded");
    await expect(client.start("refund", approve, { threadId })).rejects.toThrow(NothingToResumeError);
    await expect(client.start("refund", null, { threadId: "never" })).rejects.toThrow(EmptyInputError);
  });

  test("the ids of runs are those of their callers", async () => {
    const options = { threadId: "own id", runId: "run-1" };
    const run = await client.start("refund", { request: "c" }, options);
    expect(run).toMatchObject({ runId: "run-1", threadId: "own id", graph: "refund" });
    expect((await client.wait("own id", "run-1")).openInterruptIds).toHaveLength(1);
    expect((await collect(client.listRuns("own id"))).map((one) => one.runId)).toEqual(["run-1"]);
    expect((await client.cancel("own id")).state).toMatch(/cancel/);
  });
});

describe("a stream that breaks", () => {
  test("goes on without a gap and without a repeat", async () => {
    const relay = await startRelay(started.server.address);
    const distant = createClient(relay.address);
    const log: unknown[] = [];
    const options = { recursionLimit: 1000 };
    for await (const chunk of distant.stream("count", { left: 300 }, options)) {
      log.push(chunk.step.left);
      if (log.length % 60 === 0) relay.cut();
    }
    expect(log).toEqual(Array.from({ length: 300 }, (_, at) => 299 - at));
    distant.close();
    relay.close();
  });

  test("a run is followed from its beginning, and after an item", async () => {
    const run = await client.start("count", { left: 3 }, { threadId: "followed" });
    const items = await collect(client.follow("followed", run.runId));
    expect(items.map(({ data }) => data)).toEqual(
      [2, 1, 0].map((left) => ({ step: { left, log: [left + 1] } })),
    );
    const rest = await collect(client.follow("followed", run.runId, { after: items[0]?.cursor }));
    expect(rest).toEqual(items.slice(1));
    await expect(client.follow("followed", run.runId, { after: "x" }).next()).rejects.toThrow(
      /want the cursor/,
    );
  });
});

describe("states", () => {
  test("the state, its history, and an update by hand", async () => {
    const config = { configurable: { thread_id: "states" } };
    await client.invoke("refund", { request: "d" }, config);
    const state = await client.getState(config);
    expect(state).toMatchObject({
      values: { request: "d", log: ["read d"] },
      next: ["review"],
      config: { configurable: { thread_id: "states", checkpoint_ns: "", checkpoint_id: expect.any(String) } },
      metadata: { source: "loop", step: 1, parents: {} },
      createdAt: expect.stringMatching(/^2\d{3}-.*Z$/),
      parentConfig: { configurable: { checkpoint_id: expect.any(String) } },
      tasks: [
        { name: "review", path: ["__pregel_pull", "review"], interrupts: [{ value: { request: "d" } }] },
      ],
    });
    expect(state).not.toHaveProperty("interrupts");
    const history = await collect(client.getStateHistory(config));
    expect(history.map((one) => one.metadata?.step)).toEqual([1, 0, -1]);
    expect(history[0]?.parentConfig).toEqual(history[1]?.config);
    expect(await collect(client.getStateHistory(config, { limit: 1, before: history[0]?.config }))).toEqual([
      history[1],
    ]);
    const written = await client.updateState(config, { decision: "rejected" }, "review");
    expect((await client.getState(written)).values).toMatchObject({ decision: "rejected" });
    expect(await client.invoke("refund", null, config)).toMatchObject({
      log: ["read d", "closed: rejected"],
    });
  });

  test("a thread that is not there is empty", async () => {
    const config = { configurable: { thread_id: "nothing" } };
    expect(await client.getState(config)).toEqual({ values: {}, next: [], config, tasks: [] });
    expect(await collect(client.getStateHistory(config))).toEqual([]);
  });
});

describe("graphs and threads", () => {
  test("graphs", async () => {
    expect(await client.getGraph("refund")).toMatchObject({ name: "refund", versions: [expect.any(String)] });
    expect((await collect(client.listGraphs())).map(({ name }) => name)).toEqual(["count", "refund"]);
    await expect(client.putGraph("graph: bad\nnodes: {}\n")).rejects.toThrow(InvalidGraphError);
  });

  test("threads", async () => {
    await client.invoke("count", { left: 1 }, { threadId: "to be deleted" });
    expect(await collect(client.listThreads())).toContainEqual(
      expect.objectContaining({ threadId: "to be deleted" }),
    );
    await client.deleteThread("to be deleted");
    expect((await collect(client.listThreads())).map(({ threadId }) => threadId)).not.toContain(
      "to be deleted",
    );
  });
});

describe("the inbox", () => {
  test("lists, claims, comments and answers", async () => {
    await client.invoke("refund", { request: "e" }, { threadId: "inbox" });
    const [question] = await collect(client.inbox.list({ threadId: "inbox" }));
    if (question === undefined) throw new Error("no question is open");
    expect(question).toMatchObject({
      threadId: "inbox",
      graph: "refund",
      node: "review",
      value: { request: "e" },
      message: "Refund: e",
      reason: "approval",
      state: "open",
    });
    expect((await client.inbox.count()).count).toBeGreaterThan(0n);
    expect(await client.inbox.comment(question, "looks right")).toMatchObject({
      kind: "commented",
      note: "looks right",
    });
    const commented = await client.inbox.get("inbox", question.id);
    expect((await client.inbox.update(commented, { assignees: ["ann"] })).assignees).toEqual(["ann"]);
    expect(await collect(client.inbox.list({ assignee: "ann" }))).toHaveLength(1);
    await expect(client.inbox.answer(question, { decision: "perhaps" })).rejects.toThrow(InvalidResumeError);
    await expect(
      client.inbox.answer({ ...question, seen: "other" }, { decision: "approved" }),
    ).rejects.toThrow(ConflictError);
    await client.inbox.answer(question, { decision: "approved" }, { note: "by phone" });
    expect((await client.wait("inbox")).state).toBe("succeeded");
    expect(await client.inbox.get("inbox", question.id)).toMatchObject({
      state: "consumed",
      note: "by phone",
    });
    expect((await collect(client.inbox.trail(question))).map(({ kind }) => kind)).toContain("commented");
  });

  test("a question is dismissed", async () => {
    await client.invoke("refund", { request: "f" }, { threadId: "dismissed" });
    const [question] = await collect(client.inbox.list({ threadId: "dismissed" }));
    if (question === undefined) throw new Error("no question is open");
    await client.inbox.dismiss(question, "not needed");
    expect((await client.wait("dismissed")).state).toBe("failed");
  });

  test("is watched over a broken connection", async () => {
    const relay = await startRelay(started.server.address);
    const distant = createClient(relay.address);
    const left = new AbortController();
    const watch = distant.inbox.watch({ graph: "refund", threadId: "watched" }, { signal: left.signal });
    const first = watch.next();
    await client.invoke("refund", { request: "g" }, { threadId: "watched" });
    const change = (await first).value;
    if (change === undefined) throw new Error("the watch has ended");
    expect(change).toMatchObject({ question: { value: { request: "g" }, state: "open" } });
    relay.cut();
    await client.inbox.answer(change.question, { decision: "approved" });
    const states = [];
    while (states.at(-1) !== "consumed") states.push((await watch.next()).value?.question.state);
    expect(states.length).toBeLessThanOrEqual(2);
    left.abort();
    await expect(watch.next()).rejects.toMatchObject({ name: "AbortError" });
    distant.close();
    relay.close();
  });
});

/** Calls of clients that name a version of the graph. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../src/calls/index.js";
import { Client, type RunOptions } from "../src/client/index.js";
import {
  AlreadyExistsError,
  Annotation,
  Command,
  GraphVersionError,
  InvalidArgumentError,
  OpenQuestionsError,
  START,
  StateGraph,
  ThreadBusyError,
} from "../src/index.js";
import { startServer } from "./server.js";

const started = startServer();
let client: Client;
let calls: string[] = [];

/** A graph that asks, in a version of its own. */
function documentOf(version: string): string {
  return `
graph: bill
version: ${version}
channels: { amount: {}, decision: {} }
nodes:
  ask:
    ask: { message: "'${version}?'", update: { decision: "'${version}: ' + answer" } }
edges:
  - START -> ask -> END
`;
}

/** The caller of the server; notes the methods that are called. */
function notingCaller(): Caller {
  const { caller } = started;
  return new Proxy(caller, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => {
        const method = given[0] as { name?: string } | undefined;
        if (name === "unary" || name === "serverStream") calls.push(method?.name ?? "");
        return member.apply(target, given);
      };
    },
  });
}

beforeAll(async () => {
  client = new Client(notingCaller());
  await client.putGraph(documentOf("one"));
  await client.putGraph(documentOf("two"));
});

/** A thread that waits on version one. */
async function askOnVersionOne(threadId: string): Promise<void> {
  await client.invoke("bill", { amount: 1 }, { threadId, version: "one" });
}

async function readThread(threadId: string) {
  for await (const thread of client.listThreads()) {
    if (thread.threadId !== threadId) continue;
    const questions = [];
    for await (const question of client.inbox.list({ threadId })) questions.push(question.message);
    return { version: thread.version, questions };
  }
  throw new Error(`there is no thread ${threadId}`);
}

const answer = new Command({ resume: "yes" });

describe("a thread that waits", () => {
  const inputs = [
    ["null", null],
    ["input", { amount: 2 }],
    ["answer", answer],
  ] as const;

  test.each(inputs)("is not called on another version: %s", async (kind, input) => {
    const threadId = `other-${kind}`;
    await askOnVersionOne(threadId);
    const error = await client.invoke("bill", input, { threadId, version: "two" }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(GraphVersionError);
    expect(error).toMatchObject({
      name: "GraphVersionError",
      threadVersion: "one",
      namedVersion: "two",
      metadata: { threadId, graph: "bill" },
    });
    expect(error.message).toBe(
      `thread "${threadId}" is on version "one" of graph "bill", and the call names version "two": ` +
        "answer its questions without the version, or move it, which withdraws them, with " +
        `invoke("bill", null, { threadId: "${threadId}", version: "two", openQuestions: "discard" })`,
    );
    expect(await readThread(threadId)).toEqual({ version: "one", questions: ["one?"] });
    expect(await client.invoke("bill", answer, { threadId })).toMatchObject({ decision: "one: yes" });
  });

  test.each(inputs)("is called on its own version: %s", async (kind, input) => {
    const threadId = `own-${kind}`;
    await askOnVersionOne(threadId);
    const end = await client.invoke("bill", input, { threadId, version: "one" });
    if (kind === "answer") expect(end).toMatchObject({ decision: "one: yes" });
    else expect(end.__interrupt__).toMatchObject([{ value: null }]);
    expect((await readThread(threadId)).version).toBe("one");
  });

  test("is not answered on a version that is not there", async () => {
    await askOnVersionOne("unknown");
    const call = client.invoke("bill", answer, { threadId: "unknown", version: "three" });
    await expect(call).rejects.toMatchObject({ threadVersion: "one", namedVersion: "three" });
    expect((await readThread("unknown")).questions).toEqual(["one?"]);
  });

  test("refuses a stream and a start as well", async () => {
    const options = { threadId: "started", version: "two" };
    await askOnVersionOne("started");
    await expect(client.start("bill", null, options)).rejects.toThrow(GraphVersionError);
    await expect(client.stream("bill", answer, options).next()).rejects.toThrow(GraphVersionError);
    await expect(client.stream("bill", null, options).next()).rejects.toThrow(GraphVersionError);
    expect(await readThread("started")).toEqual({ version: "one", questions: ["one?"] });
    expect((await client.start("bill", null, { ...options, version: "one" })).version).toBe("one");
  });

  test("moves when the call withdraws its questions", async () => {
    await askOnVersionOne("moved");
    const options: RunOptions = { threadId: "moved", version: "two", openQuestions: "discard" };
    await client.invoke("bill", null, options);
    expect(await readThread("moved")).toEqual({ version: "two", questions: ["two?"] });
    const rejecting = client.invoke("bill", null, { ...options, openQuestions: "reject" });
    await expect(rejecting).rejects.toThrow(OpenQuestionsError);
    const later = await client.start("bill", { amount: 3 }, { threadId: "moved", openQuestions: "enqueue" });
    expect(later.state).toBe("queued");
    expect(await client.invoke("bill", answer, { threadId: "moved" })).toMatchObject({
      decision: "two: yes",
    });
    expect(await client.wait("moved", later.runId)).toMatchObject({ state: "interrupted", version: "two" });
  });

  test("of another graph is named as that", async () => {
    await client.putGraph(documentOf("one").replace("graph: bill", "graph: letter"));
    await askOnVersionOne("foreign");
    const expected = { metadata: { graph: "bill" }, violations: { "run.graph": expect.any(String) } };
    for (const [input, version] of [
      [null, ""],
      [{ amount: 2 }, "one"],
      [answer, "one"],
    ] as const) {
      const error = await client
        .invoke("letter", input, { threadId: "foreign", version })
        .catch((thrown) => thrown);
      expect(error).toBeInstanceOf(AlreadyExistsError);
      expect(error).toMatchObject({ reason: "INVALID_FIELD", ...expected });
    }
    expect((await readThread("foreign")).questions).toEqual(["one?"]);
  });
});

test("a thread that rests moves", async () => {
  await askOnVersionOne("rests");
  await client.invoke("bill", answer, { threadId: "rests" });
  const refused = client.invoke("bill", answer, { threadId: "rests", version: "two" });
  await expect(refused).rejects.toThrow(
    'leave the version out, or move it with invoke("bill", null, { threadId: "rests", version: "two" })',
  );
  await client.invoke("bill", null, { threadId: "rests", version: "two" });
  expect((await readThread("rests")).version).toBe("two");
});

test("a call that names no version asks nothing of its thread", async () => {
  await client.invoke("bill", { amount: 1 }, { threadId: "plain" });
  calls = [];
  await client.invoke("bill", null, { threadId: "plain" });
  await client.invoke("bill", answer, { threadId: "plain" });
  expect(calls).toEqual(["StartRun", "GetState", "ResumeRun"]);
});

test("a word that is no policy is refused", async () => {
  const call = client.invoke("bill", null, { threadId: "words", whenBusy: "wait" as "cancel" });
  await expect(call).rejects.toThrow(InvalidArgumentError);
  await expect(call).rejects.toThrow('whenBusy is "wait": want reject, enqueue, cancel, rollback');
});

describe("a thread that runs", () => {
  const State = Annotation.Root({ log: Annotation<string> });
  const gates = new Map<string, () => void>();
  const opened = new Map<string, Promise<void>>();

  /** Threads of version "slow" work until their gate is opened. */
  function buildGraph(version: string) {
    const graph = new StateGraph(State)
      .addNode("work", async (_, { configurable }) => {
        await opened.get(`${version}-${configurable?.gate}`);
        return { log: version };
      })
      .addEdge(START, "work")
      .compile({ server: started.server.address, name: "shift", version });
    afterAll(() => graph.detach());
    return graph;
  }

  function addGate(name: string): void {
    opened.set(`slow-${name}`, new Promise((resolve) => gates.set(name, resolve)));
  }

  async function beginSlowRun(threadId: string) {
    addGate(threadId);
    const configurable = { gate: threadId };
    return await client.start("shift", {}, { threadId, version: "slow", configurable });
  }

  beforeAll(async () => {
    for (const version of ["slow", "fast"]) await buildGraph(version).connect();
  });

  test("is joined on its version only", async () => {
    await beginSlowRun("joined");
    const error = await client
      .invoke("shift", null, { threadId: "joined", version: "fast" })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(GraphVersionError);
    expect(error.cause).toBeInstanceOf(ThreadBusyError);
    expect(error.message).toContain(
      'wait for its run without the version, or move it, which cancels that run, with invoke("shift", null, ' +
        '{ threadId: "joined", version: "fast", whenBusy: "cancel" })',
    );
    const stream = client.stream("shift", null, { threadId: "joined", version: "fast" });
    await expect(stream.next()).rejects.toThrow(GraphVersionError);
    const joined = client.invoke("shift", null, { threadId: "joined", version: "slow" });
    const alone = client.invoke("shift", null, { threadId: "joined", whenBusy: "reject" });
    await expect(alone).rejects.toThrow(ThreadBusyError);
    gates.get("joined")?.();
    expect(await joined).toEqual({ log: "slow" });
  });

  test("moves when the call cancels its run", async () => {
    const { runId } = await beginSlowRun("cancelled");
    const options: RunOptions = { threadId: "cancelled", version: "fast", whenBusy: "cancel" };
    expect(await client.invoke("shift", null, options)).toEqual({ log: "fast" });
    expect((await client.getRun("cancelled", runId)).state).toBe("cancelled");
    expect((await readThread("cancelled")).version).toBe("fast");
    gates.get("cancelled")?.();
  });
});

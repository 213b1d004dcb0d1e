// The JavaScript SDK of LangGraph Server, in two major versions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer } from "./server.mjs";

let server;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

async function collect(parts) {
  const list = [];
  for await (const part of parts) list.push(part);
  return list;
}

/** Reads parts up to the first one that is the last. */
async function take(parts, isLast) {
  const list = [];
  for await (const part of parts) {
    list.push(part);
    if (isLast(part)) return list;
  }
  throw new Error(`the stream has ended after ${JSON.stringify(list)}`);
}

const isEnd = (run) => ({ event, data }) => event === "metadata" && data.run_id === run && data.status === "run_done";

const text = (values) => values.messages.map((m) => `${m.type}: ${m.content}`);
const given = { messages: [{ role: "user", content: "hi" }] };

for (const version of ["sdk-1", "sdk-2"]) {
  test(`${version}: ask, answer, join, history, search, cancel`, async () => {
    const { Client } = await import(version);
    const client = new Client({ apiUrl: server.url });
    const { thread_id: thread } = await client.threads.create({ metadata: { made: version, deep: { by: ["js"] } } });

    let created;
    const streamMode = ["values", "messages-tuple", "updates"];
    const asked = await collect(
      client.runs.stream(thread, "chat", { input: given, streamMode, streamResumable: true, onRunCreated: (run) => (created = run) }),
    );
    assert.equal(asked[0].event, "metadata");
    assert.equal(asked[0].data.run_id, created.run_id);
    const last = asked.findLast((part) => part.event === "values");
    assert.equal(last.data.__interrupt__[0].value.question, "Send it?");
    assert.deepEqual(text(last.data), ["human: hi", "ai: You said: hi"]);
    const messages = asked.filter((part) => part.event === "messages");
    assert.deepEqual(messages.map((part) => part.data[0].content), ["You said: hi"]);

    const waiting = await client.threads.get(thread);
    assert.equal(waiting.status, "interrupted");
    assert.equal(Object.values(waiting.interrupts)[0][0].id, last.data.__interrupt__[0].id);

    for (const part of asked.slice(1)) {
      const rest = await collect(client.runs.joinStream(thread, created.run_id, { lastEventId: part.id }));
      assert.deepEqual(rest, asked.slice(asked.indexOf(part) + 1));
    }

    const chosen = await collect(client.runs.joinStream(thread, created.run_id, { lastEventId: "-1", streamMode: ["values", "updates"] }));
    assert.deepEqual(new Set(chosen.map((part) => part.event)), new Set(["metadata", "values", "updates"]));

    const answered = await client.runs.wait(thread, "chat", { command: { resume: "yes" } });
    assert.deepEqual(text(answered), ["human: hi", "ai: You said: hi", "ai: decided: yes"]);
    assert.deepEqual((await client.runs.list(thread)).map((run) => run.status), ["success", "success"]);
    await assert.rejects(client.runs.wait(thread, "chat", { command: { resume: "yes" } }), /409/);

    const history = await client.threads.getHistory(thread);
    assert.deepEqual(history.map((state) => state.metadata.step), [3, 2, 1, 0, -1].slice(-history.length));
    const found = await client.threads.search({ metadata: { made: version, deep: { by: ["js"] }, graph_id: "chat" }, status: "idle" });
    assert.deepEqual(found.map((t) => t.thread_id), [thread]);

    const edited = { messages: [{ role: "user", content: "bye" }] };
    const first = history.at(-1).checkpoint;
    await client.runs.wait(thread, "chat", { input: edited, checkpoint: { checkpoint_id: first.checkpoint_id, checkpoint_ns: "" } });
    assert.deepEqual(text((await client.threads.getState(thread)).values), ["human: bye", "ai: You said: bye"]);

    const run = (await client.runs.list(thread))[0];
    await client.runs.cancel(thread, run.run_id, true);
    assert.equal((await client.runs.get(thread, run.run_id)).status, "interrupted");
    assert.deepEqual((await client.assistants.getGraph("chat")).nodes.map((n) => n.id), ["__start__", "reply", "review", "close", "__end__"]);
    await client.threads.delete(thread);
    await assert.rejects(client.threads.get(thread), /404/);
  });

  test(`${version}: the runs of a thread`, async () => {
    const { Client } = await import(version);
    const client = new Client({ apiUrl: server.url });
    const { thread_id: thread } = await client.threads.create();
    const asked = await collect(client.runs.stream(thread, "chat", { input: given, streamMode: ["values"], streamResumable: true }));
    await client.runs.wait(thread, "chat", { command: { resume: "yes" } });
    const runs = (await client.runs.list(thread)).map((run) => run.run_id).reverse();
    const life = runs.flatMap((run_id) => [{ run_id, attempt: 1 }, { run_id, status: "run_done" }]);

    const seen = await take(client.threads.joinStream(thread, { lastEventId: "-", streamMode: ["lifecycle", "state_update"] }), isEnd(runs[1]));
    assert.deepEqual(seen.filter((part) => part.event === "metadata").map((part) => part.data), life);
    const states = seen.filter((part) => part.event === "state_update");
    assert.equal(states.at(-1).data.checkpoint.checkpoint_id, (await client.threads.getState(thread)).checkpoint.checkpoint_id);

    const shown = await take(client.threads.joinStream(thread, { lastEventId: "-" }), isEnd(runs[1]));
    const first = shown.slice(0, shown.findIndex(isEnd(runs[0])));
    assert.deepEqual(first.map(({ event, data }) => ({ event, data })), asked.map(({ event, data }) => ({ event, data })));
    const rest = await take(client.threads.joinStream(thread, { lastEventId: first.at(-1).id }), isEnd(runs[1]));
    assert.deepEqual(rest, shown.slice(first.length));
  });
}

for (const version of ["sdk-1", "sdk-2"]) {
  test(`${version}: crons`, async () => {
    const { Client } = await import(version);
    const { crons, threads } = new Client({ apiUrl: server.url });
    const made = await crons.create("chat", { schedule: "0 9 * * 1-5", input: given, metadata: { made: version } });
    assert.deepEqual([made.schedule, made.enabled, made.thread_id], ["0 9 * * 1-5", true, null]);
    assert.deepEqual(made.payload.input, given);
    assert.ok(new Date(made.next_run_date) > new Date());
    const { thread_id: thread } = await threads.create();
    const own = await crons.createForThread(thread, "chat", { schedule: "@daily", input: given, multitaskStrategy: "reject" });
    assert.equal(own.thread_id, thread);
    const found = await crons.search({ assistantId: "chat", threadId: thread });
    assert.deepEqual(found, [own]);
    assert.ok((await crons.search()).some((cron) => cron.cron_id === made.cron_id));
    if (crons.update) {
      const changed = await crons.update(made.cron_id, { schedule: "30 9 * * *", enabled: false });
      assert.deepEqual([changed.schedule, changed.enabled, changed.next_run_date], ["30 9 * * *", false, null]);
    }
    for (const cron of [made, own]) await crons.delete(cron.cron_id);
    await assert.rejects(crons.delete(made.cron_id), /404/);
  });

  test(`${version}: the store`, async () => {
    const { Client } = await import(version);
    const { store } = new Client({ apiUrl: server.url });
    const namespace = [version, "users", "ann"];
    await store.putItem(namespace, "k", { n: 1.5, text: "é" }, { index: false, ttl: 5 });
    const item = await store.getItem(namespace, "k", { refreshTtl: false });
    assert.deepEqual([item.namespace, item.key, item.value], [namespace, "k", { n: 1.5, text: "é" }]);
    assert.ok(Date.parse(item.createdAt) <= Date.parse(item.updatedAt));
    assert.equal(await store.getItem(namespace, "other"), null);

    await store.putItem([version, "users", "ben"], "k", { n: 2 });
    const { items } = await store.searchItems([version], { filter: { n: { $gte: 2 } } });
    assert.deepEqual(items.map(({ namespace, value }) => [namespace, value]), [[[version, "users", "ben"], { n: 2 }]]);
    assert.ok(items[0].createdAt);
    assert.equal((await store.searchItems([version], { limit: 1, offset: 1 })).items.length, 1);
    const { namespaces } = await store.listNamespaces({ prefix: [version], maxDepth: 2 });
    assert.deepEqual(namespaces, [[version, "users"]]);

    await assert.rejects(store.searchItems([version], { query: "tea" }), /422/);
    await assert.rejects(store.putItem(["langgraph"], "k", {}), /422/);
    await store.deleteItem(namespace, "k");
    assert.equal(await store.getItem(namespace, "k"), null);
  });
}

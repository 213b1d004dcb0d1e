/** What all stores do alike, and what a store in a server does besides. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DevServer, dev } from "../src/dev/index.js";
import {
  Annotation,
  Command,
  GraphdStore,
  getStore,
  InMemoryStore,
  interrupt,
  START,
  StateGraph,
} from "../src/index.js";
import { createClient } from "../src/node.js";
import type { Item } from "../src/values/index.js";

const keysOf = (found: Item[]) => found.map(({ key }) => key).sort();

const folder = mkdtempSync(join(tmpdir(), "stores-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(["process", "memory", `sqlite:${folder}/graphd.db`])("the store %s", (where) => {
  let server: DevServer | undefined;
  beforeAll(async () => {
    if (where !== "process") server = await dev({ store: where });
  });
  afterAll(async () => await server?.close());

  /** A store without items. */
  async function newStore(): Promise<InMemoryStore | GraphdStore> {
    if (server === undefined) return new InMemoryStore();
    const store = new GraphdStore({ server: server.address });
    for (const item of await store.search([], { limit: 1000 })) await store.delete(item.namespace, item.key);
    return store;
  }

  test("an item is put, read and deleted", async () => {
    const store = await newStore();
    const value = { n: 1.5, text: "é\n", deep: { list: [null, true, {}] } };
    const before = Date.now();
    await store.put(["users", "ann"], "k", value);
    const item = await store.get(["users", "ann"], "k");
    expect(item).toMatchObject({ namespace: ["users", "ann"], key: "k", value });
    expect(Math.abs((item?.createdAt.getTime() ?? 0) - before)).toBeLessThan(60_000);
    await store.put(["users", "ann"], "k", { n: 2 });
    const again = await store.get(["users", "ann"], "k");
    expect(again).toMatchObject({ value: { n: 2 }, createdAt: item?.createdAt });
    expect(await store.get(["users", "ann"], "other")).toBeNull();
    expect(await store.get(["users"], "k")).toBeNull();
    await store.delete(["users", "ann"], "k");
    await store.delete(["users", "ann"], "k");
    expect(await store.get(["users", "ann"], "k")).toBeNull();
  });

  test("filters", async () => {
    const store = await newStore();
    for (const [at, kind] of ["cat", "dog", "cat"].entries()) {
      const n = at + 1;
      await store.put(["pets", kind], `k${n}`, { n, kind, in: { n }, tags: ["x", { deep: n }] });
    }
    await store.put(["petshop"], "k4", { n: 1 });
    const cases: [Record<string, any> | undefined, string][] = [
      [undefined, "k1 k2 k3"],
      [{}, "k1 k2 k3"],
      [{ n: 1 }, "k1"],
      [{ n: { $eq: 2 } }, "k2"],
      [{ n: { $ne: 2 } }, "k1 k3"],
      [{ n: { $gt: 1, $lte: 3 } }, "k2 k3"],
      [{ n: { $gte: 2 }, kind: "cat" }, "k3"],
      [{ n: { $lt: "2" } }, ""],
      [{ kind: { $gt: "cat" } }, "k2"],
      [{ tags: ["x", { deep: 1 }] }, "k1"],
      [{ tags: ["x"] }, ""],
      [{ in: { n: 2 } }, "k2"],
      [{ in: { n: { $gte: 2 } } }, "k2 k3"],
      [{ gone: null }, "k1 k2 k3"],
      [{ gone: { $ne: 1 } }, "k1 k2 k3"],
      [{ gone: 1 }, ""],
    ];
    for (const [filter, keys] of cases) {
      const found = await store.search(["pets"], { ...(filter && { filter }) });
      expect(keysOf(found).join(" "), JSON.stringify(filter)).toBe(keys);
    }
    await expect(store.search(["pets"], { filter: { n: { $in: [1] } } })).rejects.toThrow(
      "unknown operator $in",
    );
  });

  test("pages of a search have each item once", async () => {
    const store = await newStore();
    for (let n = 0; n < 7; n++) await store.put(["a", `${n % 2}`], `k${n}`, { even: n % 2 === 0 });
    for (const [filter, count] of [
      [{}, 7],
      [{ even: true }, 4],
    ] as const) {
      const pages = [0, 3, 6].map((offset) => store.search(["a"], { filter, limit: 3, offset }));
      const keys = keysOf((await Promise.all(pages)).flat());
      expect(new Set(keys).size).toBe(count);
      expect(keys.length).toBe(count);
    }
    expect(await store.search(["a"], { limit: 0 })).toEqual([]);
    expect((await store.search([])).length).toBe(7);
  });

  test("namespaces", async () => {
    const store = await newStore();
    for (const namespace of [["b", "x"], ["a", "x", "1"], ["a", "y"], ["a"]])
      await store.put(namespace, "k", {});
    for (const [options, wanted] of [
      [{}, "a a/x/1 a/y b/x"],
      [{ prefix: ["a"] }, "a a/x/1 a/y"],
      [{ prefix: ["*", "x"] }, "a/x/1 b/x"],
      [{ suffix: ["x"] }, "b/x"],
      [{ suffix: ["x", "*"] }, "a/x/1"],
      [{ maxDepth: 1 }, "a b"],
      [{ limit: 2, offset: 1 }, "a/x/1 a/y"],
      [{ limit: 0 }, ""],
    ] as const) {
      const found = await store.listNamespaces(options as never);
      expect(found.map((labels) => labels.join("/")).join(" "), JSON.stringify(options)).toBe(wanted);
    }
  });

  test.each([
    ["a text", "abc", "a namespace is a list of texts"],
    ["no label", [], "the namespace is empty"],
    ["an empty label", ["a", ""], "a namespace is a list of texts"],
    ["a period", ["a.b"], 'the label "a.b" has a period'],
    ["LangGraph's own", ["langgraph"], 'must not be "langgraph"'],
  ])("a namespace with %s is refused", async (_name, namespace, said) => {
    const store = await newStore();
    await expect(store.put(namespace as never, "k", {})).rejects.toThrow(said);
    await expect(store.put(["a"], "k", { wrong: () => 1 })).rejects.toThrow("wrong");
    expect(await store.search([])).toEqual([]);
  });
});

describe("GraphdStore", () => {
  let server: DevServer;
  beforeAll(async () => {
    server = await dev({ flags: ["--items-searched", "100"] });
  });
  afterAll(async () => await server.close());

  test("nodes keep items across threads", async () => {
    const State = Annotation.Root({ fact: Annotation<string>, known: Annotation<string[]> });
    const store = new GraphdStore({ server: server.address });
    const graph = new StateGraph(State)
      .addNode("remember", async (state, config) => {
        await config.store?.put(["facts"], state.fact, { n: 1 });
        const answer = interrupt("more?");
        const found = await getStore()?.search(["facts"]);
        return { known: [...keysOf(found ?? []), String(answer)] };
      })
      .addEdge(START, "remember")
      .compile({ store, server: server.address });
    const known: string[] = [];
    for (const fact of ["likes tea", "tall"]) {
      known.push(fact);
      const config = { configurable: { thread_id: `fact ${fact}` } };
      await graph.invoke({ fact }, config);
      expect((await graph.invoke(new Command({ resume: "no" }), config)).known).toEqual([...known, "no"]);
    }
  });

  test("a graph inside of another has its store, also in a run of another process", async () => {
    const State = Annotation.Root({ found: Annotation<unknown> });
    const inner = new StateGraph(State)
      .addNode("look", async (_, { store }) => ({ found: (await store?.get(["inner"], "k"))?.value ?? null }))
      .addEdge(START, "look")
      .compile();
    const store = new GraphdStore({ server: server.address });
    await store.put(["inner"], "k", { n: 1 });
    const outer = new StateGraph(State)
      .addNode("inner", inner)
      .addEdge(START, "inner")
      .compile({ store, server: server.address, name: "outer" });
    await outer.connect();
    const client = createClient(server.address);
    expect(await client.invoke("outer", {})).toEqual({ found: { n: 1 } });
    client.close();
    await outer.detach();
  });

  test("clients reach the same items", async () => {
    const client = createClient(server.address);
    await client.store.put(["clients"], "k", { n: 1 });
    const store = new GraphdStore({ server: server.address });
    expect((await store.get(["clients"], "k"))?.value).toEqual({ n: 1 });
    await store.delete(["clients"], "k");
    expect(await client.store.get(["clients"], "k")).toBeNull();
    client.close();
  });

  test("items expire", async () => {
    const store = new GraphdStore({ server: server.address });
    await store.put(["short"], "k", {}, undefined, { ttl: 0.0005 });
    await expect.poll(async () => await store.get(["short"], "k", { refreshTtl: false })).toBeNull();
    await expect(store.put(["short"], "k", {}, false, { ttl: 0 })).rejects.toThrow("ttl is 0");
    await expect(store.put(["short"], "k", {}, false, { ttl: 1e300 })).rejects.toThrow("ttl is 1e+300");
  });

  test("what it does not do is refused", async () => {
    const store = new GraphdStore({ server: server.address });
    await expect(store.search(["a"], { query: "tea" })).rejects.toThrow("no index of what texts mean");
    await expect(store.search(["a"], { limit: -1 })).rejects.toThrow("limit is -1");
    await expect(store.put(["a"], "", {})).rejects.toThrow("key: must be set");
    for (let n = 0; n < 101; n++) await store.put(["many", `${n}`], "k", { n });
    await expect(store.search(["many"], { filter: { n: -1 } })).rejects.toMatchObject({
      serverReason: "ITEM_SEARCH_TOO_BROAD",
    });
    expect(() => new GraphdStore({ timeout: 0 })).toThrow("timeout is 0");
  });

  test("puts at once follow one another", async () => {
    const store = new GraphdStore({ server: server.address });
    await Promise.all(Array.from({ length: 20 }, (_, by) => store.put(["race"], "k", { by })));
    expect((await store.search(["race"])).length).toBe(1);
  });
});

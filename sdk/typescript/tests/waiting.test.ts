/** What a program is told while it waits for a server or a worker. */
import { afterEach, expect, test } from "vitest";
import { dev } from "../src/dev/index.js";
import { Annotation, Command, interrupt, START, StateGraph } from "../src/index.js";
import { createClient } from "../src/node.js";
import { startServer } from "./server.js";

const started = startServer();

const State = Annotation.Root({ answer: Annotation<string> });

/** The warnings of the process, once there are some. */
function expectWarning(code: string): Promise<string> {
  return new Promise((resolve) => {
    const listen = (warning: Error & { code?: string }) => {
      if (warning.code !== code) return;
      process.removeListener("warning", listen);
      resolve(`${warning.name}: ${warning.message}`);
    };
    process.on("warning", listen);
  });
}

afterEach(() => {
  process.removeAllListeners("warning");
});

function buildGraph(name: string, options: { server?: string; second?: string } = {}) {
  return new StateGraph(State)
    .addNode("ask", () => ({ answer: interrupt<string, string>("go?") }))
    .addNode(options.second ?? "end", (state) => ({ answer: `${state.answer}!` }))
    .addEdge(START, "ask")
    .addEdge("ask", (options.second ?? "end") as "ask")
    .compile({ server: options.server ?? started.server.address, name });
}

test.each(["invoke", "stream"])("a run whose version no worker serves: %s", async (way) => {
  const name = `unserved-${way}`;
  const first = buildGraph(name);
  const config = { configurable: { thread_id: name } };
  await first.invoke({}, config);
  await first.detach();
  const changed = buildGraph(name, { second: "other" });
  const warned = expectWarning("NO_WORKER_AVAILABLE");
  const answer = new Command({ resume: "yes" });
  const waiting =
    way === "invoke"
      ? changed.invoke(answer, config)
      : changed.stream(answer, config).then(async (chunks) => {
          for await (const _ of chunks);
        });
  const warning = await warned;
  const client = createClient(started.server.address);
  const [old, own] = (await client.getGraph(name)).versions;
  client.close();
  expect(warning).toBe(
    `GraphdWarning: thread "${name}", node "ask": no connected worker serves version ${old} of graph ${name}; those ` +
      `that are connected serve ${own}; the task waits. A thread stays on the version of its graph that it began ` +
      `with: start a worker that serves version ${old}, or move the thread to a version that is served, with ` +
      `\`graphd run ${name}@${own} --thread ${name} --on-busy cancel\``,
  );
  const again = buildGraph(name);
  await waiting;
  expect((await changed.getState(config)).values).toEqual({ answer: "yes!" });
  await again.detach();
  await changed.detach();
});

test("conditions at the start and reducers that no worker serves are named as what they are", async () => {
  const Log = Annotation.Root({
    log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  });
  const { address } = started.server;
  const end = () => ({});
  const graphs = [
    new StateGraph(State).addNode("end", end).addConditionalEdges(START, () => "end" as const),
    new StateGraph(Log).addNode("end", end).addEdge(START, "end"),
  ];
  const client = createClient(address);
  const texts = [];
  for (const [index, builder] of graphs.entries()) {
    const name = `nameless-${index}`;
    const graph = (builder as StateGraph).compile({ server: address, name });
    await graph.connect();
    await graph.detach();
    const warned = expectWarning("NO_WORKER_AVAILABLE");
    client.invoke(name, { log: ["a"], answer: "" }, { threadId: name }).catch(() => {});
    texts.push(await warned);
    await client.cancel(name);
  }
  client.close();
  expect(texts[0]).toContain('thread "nameless-0", a condition after START: no worker of graph nameless-0');
  expect(texts[0]).toMatch(/ with `graphd run nameless-0@VERSION --thread nameless-0 --on-busy cancel`$/);
  expect(texts[1]).toContain('thread "nameless-1", the reducer of a key: no worker of graph nameless-1');
});

test("a worker may start before its server", async () => {
  const gone = await dev();
  const { address } = gone;
  await gone.close();
  const graph = buildGraph("early", { server: address });
  const warned = expectWarning("UNAVAILABLE");
  const served = graph.serve();
  expect(await warned).toMatch(
    /no graphd answered at .* within 3 s.*ECONNREFUSED.* The worker goes on trying$/,
  );
  const server = await dev({ port: Number(address.split(":").at(-1)) });
  const client = createClient(address);
  await graph.connect();
  expect(await client.invoke("early", {})).toMatchObject({ __interrupt__: [{ value: "go?" }] });
  await graph.detach();
  await served;
  client.close();
  await server.close();
});

test("workers that wait for one server tell of it once, and when it is there", async () => {
  const gone = await dev();
  const { address } = gone;
  await gone.close();
  const told: string[] = [];
  process.on("warning", ({ message, code }: Error & { code?: string }) => {
    if (code === "UNAVAILABLE" || code === "CONNECTED") told.push(`${code}: ${message}`);
  });
  const graphs = [1, 2, 3, 4, 5].map((number) => buildGraph(`several-${number}`, { server: address }));
  const served = graphs.map((graph) => graph.serve());
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  expect(told).toHaveLength(1);
  const server = await dev({ port: Number(address.split(":").at(-1)) });
  for (const graph of graphs) await graph.connect();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(told).toEqual([
    expect.stringMatching(/^UNAVAILABLE: no graphd answered at .* within 3 s/),
    `CONNECTED: graphd answers at ${address}: the worker is connected`,
  ]);
  for (const graph of graphs) await graph.detach();
  await Promise.all(served);
  await server.close();
}, 30_000);

test("a worker that leaves before it had a server", async () => {
  const gone = await dev();
  await gone.close();
  const graph = buildGraph("left-early", { server: gone.address });
  const served = graph.serve();
  await graph.detach();
  await served;
});

test("once a graph is connected others call it by its name", async () => {
  for (let round = 0; round < 5; round++) {
    const graph = buildGraph(`connected-${round}`);
    await graph.connect();
    const client = createClient(started.server.address);
    expect(await client.invoke(`connected-${round}`, {})).toHaveProperty("__interrupt__");
    client.close();
    await graph.detach();
  }
});

test("an answer of the wrong kind is named as what it is", async () => {
  const graph = new StateGraph(State)
    .addNode("ask", () => ({
      answer: String(interrupt<string, boolean>("go?", { responseSchema: { type: "boolean" } })),
    }))
    .addEdge(START, "ask")
    .compile({ server: started.server.address, name: "wrong-answer" });
  const config = { configurable: { thread_id: "wrong-answer" } };
  await graph.invoke({}, config);
  await expect(graph.invoke(new Command({ resume: "yes" }), config)).rejects.toThrow(/^the answer: /);
  await graph.detach();
});

test("an error of a node elsewhere says where it was thrown", async () => {
  const graph = new StateGraph(State)
    .addNode("fail", (): { answer: string } => {
      throw new TypeError("no such order");
    })
    .addEdge(START, "fail")
    .compile({ server: started.server.address, name: "thrown" });
  await graph.connect();
  const client = createClient(started.server.address);
  const error = await client.invoke("thrown", {}).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({
    message: "no such order",
    node: "fail",
    remoteStack: expect.stringContaining("waiting.test.ts"),
  });
  client.close();
  await graph.detach();
});

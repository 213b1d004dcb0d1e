// LangGraph.js, driven by lines of JSON: see ../README.md.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Annotation, Command, END, MemorySaver, Send, START, StateGraph, interrupt } from "@langchain/langgraph";
import { RedisSaver } from "@langchain/langgraph-checkpoint-redis";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { plainRedis } from "./plain-redis.mjs";

const LENGTH = 10;
const TASKS = 100;

const graphs = {
  W1: () => {
    const builder = new StateGraph(Annotation.Root({ x: Annotation() }));
    const names = Array.from({ length: LENGTH }, (_, i) => `n${i}`);
    for (const name of names) builder.addNode(name, (state) => ({ x: state.x + 1 }));
    [START, ...names].forEach((name, i) => builder.addEdge(name, names[i] ?? END));
    return builder;
  },
  W2: () =>
    new StateGraph(Annotation.Root({ x: Annotation(), answer: Annotation() }))
      .addNode("a", (state) => ({ x: state.x + 1 }))
      .addNode("ask", (state) => ({ answer: interrupt(state.x) }))
      .addNode("z", (state) => ({ x: state.x + 1 }))
      .addEdge(START, "a")
      .addEdge("a", "ask")
      .addEdge("ask", "z")
      .addEdge("z", END),
  W3: () => {
    const done = Annotation({ reducer: (a, b) => a.concat(b), default: () => [] });
    return new StateGraph(Annotation.Root({ items: Annotation(), done, sum: Annotation() }))
      .addNode("split", () => ({}))
      .addNode("work", (input) => ({ done: [input.item + 1] }))
      .addNode("join", (state) => ({ sum: state.done.length }))
      .addEdge(START, "split")
      .addConditionalEdges("split", (state) => state.items.map((item) => new Send("work", { item })), ["work"])
      .addEdge("work", "join")
      .addEdge("join", END);
  },
};
graphs.W5 = graphs.W2;

let threads = 0;

const once = {
  W1: async (graph) => {
    const out = await graph.invoke({ x: 0 }, next());
    check(out.x === LENGTH, out);
  },
  W2: async (graph, times) => {
    const config = next();
    const asked = await graph.invoke({ x: 0 }, config);
    check(asked.__interrupt__?.length === 1, asked);
    const began = performance.now();
    let out;
    let first = true;
    for await (const values of await graph.stream(new Command({ resume: "yes" }), { ...config, streamMode: "values" })) {
      if (first) times.push(performance.now() - began);
      first = false;
      out = values;
    }
    check(out.x === 2 && out.answer === "yes", out);
  },
  W3: async (graph) => {
    const out = await graph.invoke({ items: Array(TASKS).fill(1) }, next());
    check(out.sum === TASKS, out);
  },
};
once.W5 = once.W2;

// Every superstep is stored before the next one, as graphd does it.
function next() {
  threads += 1;
  return { configurable: { thread_id: `js-${process.pid}-${threads}` }, durability: "sync", recursionLimit: 100 };
}

function check(right, out) {
  if (!right) throw new Error(`wrong result: ${JSON.stringify(out)}`);
}

async function saver(request) {
  switch (request.store) {
    case "memory":
      return [new MemorySaver(), () => {}];
    case "sqlite": {
      const s = SqliteSaver.fromConnString(request.url);
      return [s, () => s.db.close()];
    }
    case "redis": {
      const client = await plainRedis(request.url);
      return [new RedisSaver(client), () => client.quit()];
    }
    default:
      throw new Error(`no store ${request.store}`);
  }
}

async function measure(request) {
  const [checkpointer, close] = await saver(request);
  try {
    const graph = graphs[request.workload]().compile({ checkpointer });
    const [one, times] = [once[request.workload], []];
    await one(graph, []);
    const began = performance.now();
    let done = 0;
    const again = (mine) =>
      request.repeat > 0 ? mine < request.repeat : performance.now() - began < request.seconds * 1000;
    const client = async () => {
      for (let mine = 0; again(mine); mine += 1) {
        await one(graph, times);
        done += 1;
      }
    };
    await Promise.all(Array.from({ length: request.clients }, client));
    const seconds = (performance.now() - began) / 1000;
    times.sort((a, b) => a - b);
    const quantile = (q) => (times[Math.floor(times.length * q)] ?? 0) / 1000;
    return { rate: done / seconds, p50: quantile(0.5), p99: quantile(0.99) };
  } finally {
    await close();
  }
}

const version = JSON.parse(readFileSync(new URL("./node_modules/@langchain/langgraph/package.json", import.meta.url))).version;
console.log(JSON.stringify({ name: "LangGraph.js", version }));
for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await measure(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
process.exit(0);

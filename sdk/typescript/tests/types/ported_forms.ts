/**
 * More programs for LangGraph.js 1.7.3 with other imports, as ported.ts has them: agents, routes, streams, states of zod,
 * and graphs as runnables.
 */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  isAIMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import {
  type Runnable,
  type RunnableConfig,
  type RunnableInterface,
  RunnableLambda,
  RunnableSequence,
} from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import {
  Annotation,
  addMessages,
  type BaseCheckpointSaver,
  type BaseStore,
  type BinaryOperatorAggregate,
  type CachePolicy,
  Command,
  type CompiledGraph,
  type CompiledStateGraph,
  END,
  type GraphNode,
  GraphRecursionError,
  getConfig,
  getStore,
  getWriter,
  INTERRUPT,
  InMemoryStore,
  type Interrupt,
  interrupt,
  isInterrupted,
  type LangGraphRunnableConfig,
  type LastValue,
  MemorySaver,
  type Messages,
  MessagesAnnotation,
  MessagesValue,
  messagesStateReducer,
  NodeInterrupt,
  Overwrite,
  type Pregel,
  ReducedValue,
  type RetryPolicy,
  type Runtime,
  Send,
  START,
  StateGraph,
  type StateGraphArgs,
  StateSchema,
  type StateSnapshot,
  type StreamMode,
  UntrackedValue,
} from "../../src/index.js";
import { ToolNode, toolsCondition } from "../../src/prebuilt/index.js";
import { MessagesZodState, registry, withLangGraph } from "../../src/zod/index.js";

// agent
const search = tool(async ({ query }) => `found ${query}`, {
  name: "search",
  description: "s",
  schema: z.object({ query: z.string() }),
});
const tools = [search];
const toolNode = new ToolNode(tools);
const model = RunnableLambda.from(async (m: BaseMessage[]) => new AIMessage(`${m.length}`));
function shouldContinue({ messages }: typeof MessagesAnnotation.State) {
  const lastMessage = messages[messages.length - 1] as AIMessage;
  if (lastMessage.tool_calls?.length) return "tools";
  return "__end__";
}
async function callModel(state: typeof MessagesAnnotation.State) {
  const response = await model.invoke(state.messages);
  return { messages: [response] };
}
const workflow = new StateGraph(MessagesAnnotation)
  .addNode("agent", callModel)
  .addEdge("__start__", "agent")
  .addNode("tools", toolNode)
  .addEdge("tools", "agent")
  .addConditionalEdges("agent", shouldContinue);
export const app = workflow.compile();
export async function useApp() {
  const finalState = await app.invoke({ messages: [new HumanMessage("what is the weather in sf")] });
  console.log(finalState.messages[finalState.messages.length - 1]?.content);
  const next = await app.invoke({ messages: [...finalState.messages, new HumanMessage("what about ny")] });
  console.log(next.messages.at(-1)?.content);
  const inputs = { messages: [{ role: "user", content: "hi" }] };
  const config = { configurable: { thread_id: "1" }, streamMode: "values" as const };
  for await (const { messages } of await app.stream(inputs, config))
    console.log(messages[messages.length - 1]?.content);
  for await (const output of await app.stream(inputs, { streamMode: "updates" as const })) {
    for (const [node, values] of Object.entries(output)) console.log(node, values);
  }
  for await (const chunk of await app.stream(inputs)) {
    console.log(chunk.agent?.messages.length, Object.keys(chunk)[0]);
  }
  const modes: StreamMode[] = ["values", "custom"];
  for await (const [mode, c] of await app.stream(inputs, { streamMode: modes })) console.log(mode, c);
  for await (const [ns, mode, c] of await app.stream(inputs, {
    streamMode: ["updates", "messages"],
    subgraphs: true,
  }))
    console.log(ns.join(), mode, c);
  for await (const [ns, c] of await app.stream(inputs, { subgraphs: true })) console.log(ns.length, c);
  const rc: RunnableConfig = { configurable: { thread_id: 1 } };
  await app.invoke(inputs, rc);
  await app.invoke(new Command({ resume: "x" }), { ...rc, recursionLimit: 5 });
  await app.invoke(null, rc);
  await app.updateState(rc, { messages: [new HumanMessage("x")] }, "agent");
  const snap: StateSnapshot = await app.getState(rc);
  console.log(
    snap.next[0],
    snap.config.configurable?.checkpoint_id,
    snap.tasks[0]?.interrupts[0]?.value,
    snap.createdAt,
    snap.metadata?.step,
    snap.parentConfig,
  );
  for await (const s of app.getStateHistory(rc, { limit: 2 })) console.log(s.values);
  const hist: StateSnapshot[] = [];
  for await (const s of app.getStateHistory(rc)) hist.push(s);
  const g = app.getGraph();
  console.log(g.drawMermaid());
  const d = await app.getGraphAsync({ xray: true });
  console.log(d.drawMermaid());
  const [a, b] = await app.batch([inputs, inputs], rc);
  console.log(a?.messages, b?.messages);
}

// typed results
const GraphState = Annotation.Root({
  question: Annotation<string>,
  documents: Annotation<string[]>({ reducer: (x, y) => y ?? x ?? [], default: () => [] }),
  generation: Annotation<string>({ reducer: (x, y) => y ?? x ?? "" }),
  score: Annotation<number>({ value: (_, b) => b, default: () => 0 }),
  messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
  more: Annotation<BaseMessage[], Messages>({ reducer: addMessages }),
  meta: Annotation<Record<string, unknown>>({ reducer: (l, r) => ({ ...l, ...r }), default: () => ({}) }),
  opt: Annotation<string | undefined>,
  call: Annotation<{ kind: "a" | "b" } | null>(),
});
async function retrieve(state: typeof GraphState.State): Promise<Partial<typeof GraphState.State>> {
  return { documents: [state.question] };
}
async function generate(
  _state: typeof GraphState.State,
  config?: RunnableConfig,
): Promise<typeof GraphState.Update> {
  return { generation: `${config?.configurable?.x}` };
}
async function grade(
  state: typeof GraphState.State,
  config: LangGraphRunnableConfig,
): Promise<{ score: number; messages: BaseMessage[] }> {
  config.writer?.("x");
  const store = config.store;
  await store?.put(["a"], "k", { a: 1 });
  await store?.search(["a"], { query: "x", limit: 1 });
  const item = await store?.get(["a"], "k");
  console.log(item?.value.a);
  return { score: 1, messages: [new SystemMessage("x"), ...state.messages] };
}
const decide = (state: typeof GraphState.State) => (state.score > 1 ? "generate" : END);
const decideTyped = (state: typeof GraphState.State): "generate" | "retrieve" =>
  state.score > 1 ? "generate" : "retrieve";
const decideAsync = async (state: typeof GraphState.State): Promise<string> => state.question;
const many = (state: typeof GraphState.State): Send[] | string =>
  state.score ? [new Send("grade", { ...state, question: "x" })] : "generate";
class Nodes {
  constructor(private n: number) {}
  async run(state: typeof GraphState.State) {
    return { score: state.score + this.n };
  }
  arrow = async (state: typeof GraphState.State) => ({ score: this.n + state.score });
}
const nodes = new Nodes(1);
const rag = new StateGraph(GraphState)
  .addNode("retrieve", retrieve)
  .addNode("generate", generate)
  .addNode("grade", grade)
  .addNode("bound", nodes.run.bind(nodes))
  .addNode("arrow", nodes.arrow)
  .addNode(
    "lambda",
    RunnableLambda.from((s: typeof GraphState.State) => ({ score: s.score })),
  )
  .addNode(
    "seq",
    RunnableSequence.from([(s: typeof GraphState.State) => s.question, (q: string) => ({ generation: q })]),
  )
  .addNode("void", () => ({}))
  .addNode("empty", () => ({}))
  .addNode("undef", async (s) => {
    if (s.score) return { score: 2 };
    return {};
  })
  .addNode("cond", async (s) => (s.score ? { score: 2 } : { generation: "x" }))
  .addNode(
    "cmd",
    async (s) =>
      s.score ? new Command({ goto: "retrieve" }) : new Command({ goto: END, update: { score: 1 } }),
    { ends: ["retrieve", END] },
  )
  .addNode(
    "cmdOrUpdate",
    async (s) => {
      if (s.score) return new Command({ goto: "retrieve", update: { score: 2 } });
      return { score: 1 };
    },
    { ends: ["retrieve"] },
  )
  .addNode("overwrite", () => ({ documents: new Overwrite(["a"]) }))
  .addNode("literal", () => ({ call: { kind: "a" as const } }))
  .addNode("literal2", () => ({ call: { kind: "a" } }))
  .addNode("policies", grade, { retryPolicy: { maxAttempts: 2 }, cachePolicy: { ttl: 1 }, defer: true })
  .addNode("interrupts", (_s) => {
    const v: string = interrupt({ q: 1 });
    return { generation: v };
  })
  .addEdge(START, "retrieve")
  .addConditionalEdges("retrieve", decide)
  .addConditionalEdges("retrieve", decideTyped)
  .addConditionalEdges("generate", decideAsync, { x: "retrieve", y: END })
  .addConditionalEdges("grade", many, ["grade", "generate"])
  .addConditionalEdges("bound", (s) => s.documents.map((d) => new Send("grade", { question: d })))
  .addConditionalEdges("void", async (s) => (s.score ? "a" : "b"), { a: "grade", b: END })
  .addConditionalEdges({ source: "empty", path: decide, pathMap: { generate: "generate", [END]: END } })
  .addConditionalEdges(START, (s) => s.question)
  .addEdge(["grade", "bound"], "generate")
  .addEdge("generate", END);
export const ragApp = rag.compile({
  checkpointer: new MemorySaver(),
  store: new InMemoryStore(),
  interruptBefore: ["generate"],
  interruptAfter: "*",
  name: "rag",
});
export type RagResult = Awaited<ReturnType<typeof ragApp.invoke>>;
export const scoreOf = (r: RagResult): number => r.score;
export async function askRag() {
  const r = await ragApp.invoke(
    { question: "x", messages: "hi" as never },
    { configurable: { thread_id: "1" }, interruptBefore: ["grade"], durability: "exit", context: {} },
  );
  if (isInterrupted(r)) console.log(r[INTERRUPT][0]?.value);
  if (isInterrupted<{ q: number }>(r)) {
    const i: Interrupt<{ q: number }> | undefined = r.__interrupt__[0];
    console.log(i?.value?.q);
  }
  try {
    await ragApp.invoke({ question: "x" });
  } catch (e) {
    if (e instanceof GraphRecursionError) console.log(e.lc_error_code);
  }
  for await (const c of await ragApp.stream({ question: "x" }, { streamMode: "updates" })) {
    if (c.retrieve) console.log(c.retrieve.documents);
    if ("generate" in c) console.log(c.generate?.generation);
  }
  await ragApp.invoke(new Command({ resume: { id: "x" }, update: { score: 1 }, goto: "retrieve" }));
}
// loops that add nodes
const dynamic = new StateGraph(MessagesAnnotation) as any;
for (const n of ["a", "b"]) dynamic.addNode(n, async () => ({ messages: [] }));
let builder = new StateGraph(GraphState).addNode("one", () => ({}));
if (Math.random() > 2) builder = builder.addNode("one", () => ({}));
const steps = new StateGraph(GraphState)
  .addSequence([
    ["s1", (s) => ({ score: s.score })],
    ["s2", (s: typeof GraphState.State) => ({ score: s.score * 2 })],
  ])
  .addEdge(START, "s1")
  .compile();
const steps2 = new StateGraph(GraphState)
  .addSequence({ q1: (s) => ({ score: s.score }), q2: async () => ({ generation: "" }) })
  .addEdge(START, "q1")
  .compile();
console.log(steps, steps2);

// functions that build
export function createGraph(opts: { checkpointer?: MemorySaver; store?: BaseStore }) {
  return new StateGraph(GraphState)
    .addNode("one", () => ({ score: 1 }))
    .addEdge(START, "one")
    .compile(opts);
}
export type G = ReturnType<typeof createGraph>;
export const registryOf = new Map<string, CompiledStateGraph<any, any, any, any, any, any>>([
  ["a", app],
  ["b", ragApp],
]);
export const anyGraphs: Record<string, CompiledGraph<any>> = { app, ragApp };
export const pregels: Pregel<any, any>[] = [app, ragApp];
export const anyOne: CompiledStateGraph<any, any> = app as any;
export const agentLike: CompiledStateGraph<
  typeof MessagesAnnotation.State,
  typeof MessagesAnnotation.Update,
  any,
  typeof MessagesAnnotation.spec,
  typeof MessagesAnnotation.spec
> = app;
export const annotated: CompiledStateGraph<typeof GraphState.State, typeof GraphState.Update, string> =
  new StateGraph(GraphState)
    .addNode("x", () => ({}))
    .addEdge(START, "x")
    .compile();

// runnables
export const r1: RunnableInterface<any, any> = app;
export const chain2 = RunnableSequence.from([
  (s: string) => ({ messages: [new HumanMessage(s)] }),
  app,
  (o: any) => o.messages.length,
]);

// config helpers
export function inNode() {
  const w = getWriter();
  w?.({ a: 1 });
  const c = getConfig();
  const s = getStore();
  console.log(c.configurable?.thread_id, s);
}
// zod
const zs = z.object({
  messages: withLangGraph(z.custom<BaseMessage[]>(), {
    reducer: { fn: messagesStateReducer, schema: z.custom<Messages>() },
    default: () => [],
  }),
  n: z.number().default(1),
});
export const zg = new StateGraph(zs)
  .addNode("a", (s) => ({ messages: [new AIMessage(`${s.n}`)] }))
  .addEdge(START, "a")
  .compile();
const total = withLangGraph(z.number(), {
  reducer: { schema: z.string(), fn: (a, b) => a + b.length },
  default: () => 0,
});
const zw = MessagesZodState.extend({
  total,
  at: withLangGraph(z.date().optional(), { default: () => undefined }),
});
export const zwg = new StateGraph(zw)
  .addNode("a", (s) => ({ total: `${s.total.toFixed()}`, messages: new AIMessage("one") }))
  .addNode("b", () => ({ total: new Overwrite(1), at: new Date(0) }))
  // @ts-expect-error what is written is a text
  .addNode("c", () => ({ total: 1 }))
  .addEdge(START, "a")
  .compile();
export const written = zwg.invoke({ messages: "hi", total: "abc" });
const zs3 = z3.object({ a: z3.string(), b: z3.array(z3.string()).default([]) });
export const zg3 = new StateGraph(zs3)
  .addNode("a", (s) => ({ b: [s.a] }))
  .addEdge(START, "a")
  .compile();
const zin = z.object({ a: z.string() });
const zout = z.object({ b: z.string() });
const zall = z.object({ a: z.string(), b: z.string(), c: z.number().optional() });
export const zio = new StateGraph({
  state: zall,
  input: zin,
  output: zout,
  context: z.object({ u: z.string() }),
})
  .addNode("a", (s, config) => ({ b: s.a + config.context?.u }), { input: zin })
  .addEdge(START, "a")
  .compile();
export const zio2 = new StateGraph(zall, { input: zin, output: zout })
  .addNode("a", (s) => ({ b: s.a }))
  .addEdge(START, "a")
  .compile();
export const zio3 = new StateGraph(zall, z.object({ u: z.string() }))
  .addNode("a", (s, runtime: Runtime<{ u: string }>) => ({ b: s.a + runtime.context?.u }))
  .addEdge(START, "a")
  .compile();
export async function useZio() {
  const r = await zio.invoke({ a: "x" }, { context: { u: "x" } });
  console.log(r.b);
  const q = await zio2.invoke({ a: "x" });
  console.log(q.b);
  console.log((await zio3.invoke({ a: "1", b: "" }, { context: { u: "" } })).c);
}
// StateSchema
const SS = new StateSchema({
  messages: MessagesValue,
  n: z.number().default(0),
  list: new ReducedValue(
    z.array(z.string()).default(() => []),
    { inputSchema: z.union([z.string(), z.array(z.string())]), reducer: (a, b) => a.concat(b) },
  ),
  tmp: new UntrackedValue(z.string()),
});
const sNode: GraphNode<typeof SS> = async (s) => ({ n: s.n + 1, list: "x" });
export const sg = new StateGraph(SS)
  .addNode("a", sNode)
  .addNode("b", (s: typeof SS.State) => ({ list: s.list, messages: new AIMessage("x") }))
  .addConditionalEdges("a", (s) => (s.n > 1 ? END : "b"))
  .addEdge(START, "a")
  .compile();
export async function useS() {
  const r = await sg.invoke({ messages: [{ role: "user", content: "x" }], list: "a" });
  const n: number = r.n;
  const l: string[] = r.list;
  console.log(n, l, r.messages[0]?.content);
}
// cache, retry
export const rp: RetryPolicy = {
  retryOn: (e) => e instanceof Error,
  maxAttempts: 2,
  initialInterval: 1,
  backoffFactor: 2,
  maxInterval: 3,
  jitter: true,
};
export const cp: CachePolicy = { ttl: 1, keyFunc: (args) => JSON.stringify(args) };
void [isAIMessage, ToolMessage, registry, toolsCondition, NodeInterrupt];
export type Unused = [
  StateGraphArgs<any>,
  BaseCheckpointSaver,
  BinaryOperatorAggregate<any>,
  LastValue<any>,
  Runnable,
];

/**
 * Programs that were written for LangGraph.js 1.7.3, with other imports: types that they spell out, and types that are
 * inferred of them. It is compiled, and not run. Every form of it compiles with LangGraph.js, too.
 */
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import {
  Annotation,
  Command,
  type CompiledStateGraph,
  type ConditionalEdgeRouter,
  END,
  type ExtractStateType,
  type ExtractUpdateType,
  type GraphNode,
  interrupt,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  MessagesValue,
  ReducedValue,
  Send,
  START,
  StateGraph,
  type StateGraphArgs,
  StateSchema,
  type StateType,
  UntrackedValue,
  type UpdateType,
  writer,
} from "../../src/index.js";

const State = Annotation.Root({
  topic: Annotation<string>,
  subjects: Annotation<string[]>,
  jokes: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
type S = typeof State.State;
type U = typeof State.Update;

// 1. Nodes that get a Send, with an input of their own.
const makeJoke = async (state: { subject: string }): Promise<{ jokes: string[] }> => ({
  jokes: [`about ${state.subject}`],
});
export const fanOut = new StateGraph(State)
  .addNode("subjects", async (state) => ({ subjects: [state.topic] }))
  .addNode("joke", makeJoke)
  .addNode("inline", (state: { subject: string; no: number }) => ({ jokes: [state.subject] }))
  .addNode("declared", (state: { subject: string }) => ({ jokes: [state.subject] }), { metadata: { a: 1 } })
  .addNode("typed", (state) => ({ jokes: [state.subject] }), {
    input: Annotation.Root({ subject: Annotation<string> }),
  })
  .addNode("mixed", (state: S & { extra: number }, _config: RunnableConfig) => ({ topic: `${state.extra}` }))
  .addNode([["pair", (state: { subject: string }) => ({ jokes: [state.subject] })]])
  .addEdge(START, "subjects")
  .addConditionalEdges(
    "subjects",
    (state) => state.subjects.map((subject) => new Send("joke", { subject })),
    ["joke"],
  )
  .addEdge("joke", END)
  .addEdge("pair", "inline")
  .compile();

export async function readUpdates(): Promise<string> {
  for await (const chunk of await fanOut.stream({ topic: "cats" }, { streamMode: "updates" })) {
    // What the node returns, not what it might: its keys are there.
    if (chunk.subjects) return chunk.subjects.subjects.join();
    if (chunk.joke) return chunk.joke.jokes.join();
  }
  const { jokes } = await fanOut.invoke({ topic: "cats" });
  return jokes.join();
}

// 2. What is written to a reduced value differs from its value.
export const Reduced = new StateSchema({
  history: new ReducedValue(
    z.array(z.string()).default(() => []),
    { inputSchema: z.string(), reducer: (current, next) => [...current, next] },
  ),
  count: new ReducedValue(z.number().default(0), { reducer: (a, b) => a + b }),
  totals: new ReducedValue(z.record(z.string(), z.number()).default({}), {
    inputSchema: z.tuple([z.string(), z.number()]),
    reducer: (all, [name, value]) => ({ ...all, [name]: value }),
  }),
  messages: MessagesValue,
  name: z.string().optional(),
  open: new UntrackedValue<{ close(): void }>(),
});
const reducedNode: typeof Reduced.Node = () => ({ history: "one", count: 1 });
export const reduced = new StateGraph(Reduced)
  .addNode("a", (state) => ({
    history: state.history.join(),
    totals: ["a", state.count] as [string, number],
  }))
  .addNode("b", reducedNode)
  .addNode("m", (state) => ({ messages: [new AIMessage(`${state.messages.length}`)] }))
  .addEdge(START, "a")
  .compile();

// 3. Types that are spelled out.
export const bySpec = new StateGraph<typeof State.spec>(State);
export const byRoot = new StateGraph<typeof State>(State);
export const byValues = new StateGraph<typeof State.spec, S, U>(State);
export const byNodes = new StateGraph<typeof State.spec, S, U, "a" | "b">(State);
export const byAll = new StateGraph<
  typeof State.spec,
  S,
  U,
  typeof START | "a",
  typeof State.spec,
  typeof State.spec
>(State);
byNodes.addEdge(START, "a");
byNodes.addNode("c", (state) => ({ topic: state.topic.trim() })).addEdge("a", "c");

type Legacy = { messages: BaseMessage[]; count: number; name?: string };
const channels: StateGraphArgs<Legacy>["channels"] = {
  messages: { value: (x: BaseMessage[], y: BaseMessage[]) => x.concat(y), default: () => [] },
  count: { reducer: (a: number, b: number) => a + b, default: () => 0 },
  name: null,
};
export const legacy = new StateGraph<Legacy>({ channels })
  .addNode("a", async (state: Legacy) => ({ messages: [new HumanMessage(`${state.count}`)] }))
  .addNode("b", (state) => ({ count: state.messages.length }))
  .addEdge(START, "a")
  .compile();
interface LegacyInterface {
  input: string;
  steps: string[];
}
export const inlined = new StateGraph<LegacyInterface>({
  channels: {
    input: null,
    steps: { value: (x, y) => x.concat(y), default: () => [] },
  },
}).addNode("a", (state) => ({ steps: [state.input] }));

// Types of graphs: parameters, fields, results.
export function useGraph(graph: CompiledStateGraph<S, U>): Promise<unknown> {
  return graph.invoke({ topic: "cats" }, { configurable: { thread_id: "1" } });
}
export function useAnyGraph(graph: CompiledStateGraph<any, any, any>): Promise<any> {
  return graph.invoke({ anything: 1 });
}
export function useGraphs(graphs: CompiledStateGraph<any, any, any, any, any, any>[]): string[] {
  return graphs.map((graph) => graph.getName());
}
export class Service {
  private readonly graph: CompiledStateGraph<S, U, "__start__" | "a", typeof State.spec, typeof State.spec>;

  constructor() {
    this.graph = new StateGraph(State)
      .addNode("a", () => ({ topic: "x" }))
      .addEdge(START, "a")
      .compile();
  }

  async run(): Promise<string[]> {
    const { jokes } = await this.graph.invoke({ topic: "cats" });
    return jokes;
  }
}
export function addCommon(graph: StateGraph<any, any, any, any>): void {
  graph.addNode("x", (state: any) => ({ topic: state.topic })).addEdge("x", END);
}
export function addMore(
  graph: StateGraph<typeof State.spec, S, U, typeof START>,
): StateGraph<typeof State.spec, S, U, typeof START | "x"> {
  return graph.addNode("x", (state) => ({ topic: state.topic })).addEdge(START, "x");
}
useAnyGraph(fanOut);
useAnyGraph(legacy);
useGraphs([fanOut, reduced, legacy]);
addCommon(new StateGraph(State));
addMore(new StateGraph(State));
export type Values = StateType<typeof State.spec>;
export type Updates = UpdateType<typeof State.spec>;
export type Derived = [ExtractStateType<typeof State>, ExtractUpdateType<typeof State>];
export const derived: Derived = [{ topic: "", subjects: [], jokes: [] }, { topic: "a" }];

// Nodes and routers that stand alone.
export const node: typeof State.Node = async (state) => ({ topic: state.topic });
export const graphNode: GraphNode<typeof State> = (state) => ({ topic: state.topic });
export const contextNode: GraphNode<typeof Reduced, { user: string }, "a" | "b"> = (state, config) => {
  const user: string | undefined = config.context?.user;
  if (state.count > 1) return new Command({ goto: "a", update: { count: 1 } });
  return { name: user };
};
export const bagNode: GraphNode<{
  InputSchema: typeof Reduced;
  OutputSchema: typeof State;
  Nodes: "a" | "b";
}> = (state) => ({ topic: `${state.count}` });
export const route: ConditionalEdgeRouter<typeof State, Record<string, any>, "a" | "b"> = (state) => {
  if (state.topic === "x") return END;
  return state.jokes.length > 1 ? "a" : [new Send("b", state)];
};
new StateGraph(State)
  .addNode("a", graphNode)
  .addNode("b", node)
  .addConditionalEdges("a", route, ["a", "b", END]);
new StateGraph(Reduced, z.object({ user: z.string() })).addNode("a", contextNode).addNode("b", () => ({}));

// Commands, with the nodes that they lead to.
const decide = async (state: S): Promise<Command> =>
  new Command({ goto: state.topic, update: { topic: "a" } });
const decideTyped = (_state: S): Command<unknown, Partial<S>, "a" | "b"> => new Command({ goto: "a" });
export const supervised = new StateGraph(State)
  .addNode("decide", decide, { ends: ["a", "b", END] })
  .addNode("typed", decideTyped, { ends: ["a", "b"] })
  .addNode("a", () => new Command({ goto: "b" }), { ends: ["b"] })
  .addNode("b", (_state: S, config: LangGraphRunnableConfig) => {
    config.writer?.({ progress: 1 });
    return {};
  })
  .addEdge(START, "decide")
  .compile({ checkpointer: new MemorySaver() });

// Inputs, outputs and contexts of their own.
const Input = Annotation.Root({ topic: Annotation<string> });
const Output = Annotation.Root({ jokes: Annotation<string[]> });
const Config = Annotation.Root({ user: Annotation<string> });
export const configured = new StateGraph(State, Config)
  .addNode("a", (_state, config) => ({ topic: config.configurable?.user as string }))
  .addEdge(START, "a")
  .compile();
export const narrowed = new StateGraph({ stateSchema: State, input: Input, output: Output })
  .addNode("a", () => ({ jokes: ["a"] }))
  .addEdge(START, "a")
  .compile();
export const onlyInput = new StateGraph({ input: Input, output: Output })
  .addNode("a", (state) => ({ topic: state.topic }))
  .addEdge(START, "a")
  .compile();
export const second = new StateGraph(State, { input: Input, output: Output, nodes: ["a", "b"] })
  .addNode("a", () => ({ jokes: ["a"] }))
  .addNode("b", () => ({}))
  .addEdge(START, "a")
  .compile();

// A graph as a node of another graph.
export const parent = new StateGraph(State)
  .addNode("child", supervised)
  .addNode("narrow", narrowed)
  .addNode({ third: supervised, fourth: (state: S) => ({ topic: state.topic }) })
  .addEdge(START, "child")
  .compile();

// What a graph asks and writes.
const asking = new StateGraph(State, {
  interrupt: { approve: interrupt<{ reason: string }, { yes: boolean }> },
  writer: writer<{ progress: number }>,
})
  .addNode("a", (_state, { interrupt: ask, writer: write }) => {
    write({ progress: 1 });
    const answer = ask.approve({ reason: "r" });
    return { topic: answer.yes ? "yes" : "no" };
  })
  .addEdge(START, "a")
  .compile({ checkpointer: new MemorySaver() });
export async function ask(): Promise<string | undefined> {
  const result = await asking.invoke({ topic: "a" }, { configurable: { thread_id: "1" } });
  if (asking.isInterrupted(result)) return result.__interrupt__[0]?.id;
  await asking.invoke(new Command({ resume: { yes: true } }));
  return result.topic;
}

// Messages: annotations that take the keys of others, and zod.
const Agent = Annotation.Root({ ...MessagesAnnotation.spec, next: Annotation<string> });
export const agent = new StateGraph(Agent)
  .addNode("agent", async ({ messages }: typeof Agent.State) => {
    const last = messages[messages.length - 1] as AIMessage;
    return { messages: [last], next: "a" };
  })
  .addEdge(START, "agent")
  .compile();
const Zod = z.object({ name: z.string(), tries: z.number().default(0) });
export const zod = new StateGraph(Zod)
  .addNode("a", (state: z.infer<typeof Zod>) => ({ tries: state.tries + 1 }))
  .addEdge(START, "a")
  .compile();
export const zodGraph: CompiledStateGraph<z.infer<typeof Zod>, Partial<z.infer<typeof Zod>>, any> = zod;

// What compiled graphs can do besides.
export async function useMethods(): Promise<void> {
  for (const [name, graph] of fanOut.getSubgraphs()) console.log(name, graph.lg_is_pregel);
  for await (const [name] of fanOut.getSubgraphsAsync("a", true)) console.log(name);
  const bound = fanOut.withConfig({ tags: ["a"], recursionLimit: 10 });
  await bound.invoke({ topic: "a" });
  fanOut.validate();
  await fanOut.clearCache();
  const [namespace] = fanOut.lc_namespace;
  console.log(namespace, fanOut.builder.nodes);
  const length: number = await fanOut.pipe((output) => output.jokes.length).invoke({ topic: "a" });
  console.log(length);
  const state = await fanOut.getState({ configurable: { thread_id: "1" } });
  console.log(state.values.topic, state.next, state.tasks[0]?.interrupts);
  for await (const [message, metadata] of await agent.stream({ messages: [] }, { streamMode: "messages" })) {
    console.log(message.content, metadata.langgraph_node);
  }
  const mode = ["values", "updates"] as const;
  for await (const [kind, chunk] of await agent.stream({ messages: "hi" }, { streamMode: [...mode] })) {
    if (kind === "values") console.log(chunk.messages.length);
    else console.log(Object.keys(chunk));
  }
}

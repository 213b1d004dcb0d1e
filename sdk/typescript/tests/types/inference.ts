/**
 * What TypeScript infers of graphs. It is compiled, and not run: a line after `@ts-expect-error` must not compile.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { z } from "zod";
import {
  Annotation,
  Command,
  END,
  INTERRUPT,
  interrupt,
  isInterrupted,
  MemorySaver,
  MessagesAnnotation,
  MessagesValue,
  ReducedValue,
  Send,
  START,
  StateGraph,
  StateSchema,
} from "../../src/index.js";
import { registry } from "../../src/zod/index.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <T extends true>(): T | undefined => undefined;

const State = Annotation.Root({
  n: Annotation<number>,
  log: Annotation<string[], string | string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

// The state and the update of an annotation.
is<Equal<typeof State.State, { n: number; log: string[] }>>();
export const update: typeof State.Update = { log: "one" };
// @ts-expect-error the update type of a reducer
export const wrongUpdate: typeof State.Update = { log: 7 };

// Nodes read the state, and return parts of it.
const builder = new StateGraph(State)
  .addNode("a", (state) => {
    is<Equal<typeof state.n, number>>();
    return { n: state.n + 1 };
  })
  .addNode("b", async () => ({ log: ["b"] }));
// @ts-expect-error a wrong value of a known key
new StateGraph(State).addNode("x", () => ({ n: "one" }));

// Edges know the nodes.
builder.addEdge(START, "a").addEdge("a", "b").addEdge(["a", "b"], "b");
// @ts-expect-error an unknown node
builder.addEdge("a", "zzz");

// Routers answer with nodes, END or sends.
builder.addConditionalEdges("a", (state) => (state.n > 1 ? "b" : END), ["b", END]);
builder.addConditionalEdges("a", (state) => state.log.map(() => new Send("b", state)));
// @ts-expect-error a path to an unknown node
builder.addConditionalEdges("a", () => "q", { q: "zzz" });

const graph = builder.compile({ checkpointer: new MemorySaver() });

export async function callGraph(): Promise<void> {
  const result = await graph.invoke({ n: 1 });
  is<Equal<typeof result.log, string[]>>();
  // @ts-expect-error an input of another type
  await graph.invoke({ n: "one" });
  await graph.invoke(null);
  await graph.invoke(new Command({ resume: "yes" }));
  // @ts-expect-error a command that leads to an unknown node
  await graph.invoke(new Command({ goto: "zzz" as const }));
  if (isInterrupted<{ q: string }>(result)) {
    const value = result[INTERRUPT][0]?.value;
    is<Equal<typeof value, { q: string } | undefined>>();
  }
}

// The chunks of a stream follow its modes, and show what the nodes return.
export async function streamGraph(): Promise<void> {
  for await (const chunk of await graph.stream({ n: 1 })) {
    is<Equal<typeof chunk.a, { n: number } | undefined>>();
    is<Equal<typeof chunk.b, { log: string[] } | undefined>>();
  }
  for await (const chunk of await graph.stream({ n: 1 }, { streamMode: "values" })) {
    is<Equal<typeof chunk.n, number>>();
  }
  for await (const [mode] of await graph.stream({ n: 1 }, { streamMode: ["updates", "custom"] })) {
    is<Equal<typeof mode, "updates" | "custom">>();
  }
  for await (const [namespace] of await graph.stream({ n: 1 }, { streamMode: "updates", subgraphs: true })) {
    is<Equal<typeof namespace, string[]>>();
  }
}

// Messages: objects in, any form of a message out.
new StateGraph(MessagesAnnotation).addNode("m", (state) => {
  is<Equal<typeof state.messages, BaseMessage[]>>();
  return { messages: [{ role: "user", content: "hi" }] };
});

// Zod: the state, and a reducer with an input of its own.
const Zod = z.object({
  q: z.string(),
  docs: z
    .array(z.string())
    .default([])
    .register(registry, {
      reducer: {
        fn: (a: string[], b: string | string[]) => a.concat(b),
        schema: z.union([z.string(), z.array(z.string())]),
      },
    }),
});
new StateGraph(Zod).addNode("a", (state) => {
  is<Equal<typeof state.docs, string[]>>();
  return { q: state.q };
});
// @ts-expect-error a wrong value of a known key
new StateGraph(Zod).addNode("a", () => ({ q: 1 }));

// Input, output and context.
const Input = Annotation.Root({ n: Annotation<number> });
const Output = Annotation.Root({ log: Annotation<string[]> });
const narrow = new StateGraph({ stateSchema: State, input: Input, output: Output })
  .addNode("a", (_state: typeof State.State) => ({ log: ["x"] }))
  .addEdge(START, "a")
  .compile();

export async function callNarrow(): Promise<unknown> {
  const result = await narrow.invoke({ n: 1 });
  is<Equal<typeof result, { log: string[] }>>();
  // @ts-expect-error a key that the output lacks
  return result.n;
}

new StateGraph(State, z.object({ user: z.string() })).addNode("c", (_state, config) => {
  const user: string | undefined = config.context?.user;
  return { log: [user ?? ""] };
});

// The type of an answer.
export function ask(): boolean {
  const yes = interrupt<{ q: string }, boolean>({ q: "sure?" });
  is<Equal<typeof yes, boolean>>();
  return yes;
}

// Channels, the older form: with the type of the state, and without.
new StateGraph<{ count: number }>({
  channels: { count: { value: (x: number, y: number) => x + y, default: () => 0 } },
});
new StateGraph({ channels: { count: { value: (x, y) => x + y, default: () => 0 } } }).addNode(
  "a",
  (state) => {
    is<Equal<typeof state.count, number>>();
    return { count: 1 };
  },
);

// A node that gets a Send reads what that brings; nodes of a list may return different keys.
const sent = new StateGraph(State)
  .addNode("one", (state: { subject: string }) => ({ log: state.subject }))
  .addNode([
    ["two", (state) => ({ n: state.n })],
    ["three", () => ({ log: "x" })],
  ])
  .addNode({ four: (state) => ({ n: state.n + 1 }), five: async () => ({ log: ["x"] }) });
sent.addEdge("one", "two").addEdge("three", "four").addEdge("four", "five");
// @ts-expect-error a wrong value of a known key
sent.addNode("wrong", (state: { subject: string }) => ({ n: state.subject }));
// @ts-expect-error a key that the state lacks, where the input is the state
sent.addNode("wrong", (state) => ({ n: state.subject }));

// What is written to a reduced value is what its input schema takes.
const Reduced = new StateSchema({
  list: new ReducedValue(
    z.array(z.string()).default(() => []),
    { inputSchema: z.string(), reducer: (current, next) => [...current, next] },
  ),
  messages: MessagesValue,
});
is<Equal<typeof Reduced.State, { list: string[]; messages: BaseMessage[] }>>();
new StateGraph(Reduced).addNode("a", (state) => ({ list: state.list.join(), messages: "hi" }));
// @ts-expect-error a list, where the input schema takes a text
new StateGraph(Reduced).addNode("a", (state) => ({ list: state.list }));

/** Values that schemas of a state, an input or a context do not take. */
import { AIMessageChunk } from "@langchain/core/messages";
import { afterEach, describe, expect, test } from "vitest";
import * as zod4 from "zod";
import * as zod3 from "zod/v3";
import {
  Annotation,
  Command,
  InvalidUpdateError,
  interrupt,
  isInterrupted,
  MemorySaver,
  MessagesAnnotation,
  Overwrite,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
  UntrackedValue,
} from "../../src/index.js";
import { withLangGraph } from "../../src/zod/index.js";

const detached: (() => void)[] = [];
let threads = 0;

afterEach(() => {
  for (const detach of detached.splice(0)) detach();
});

/** A graph of one node. */
function build(state: unknown, node: (state: any, config: any) => unknown, context?: unknown) {
  const graph = new StateGraph<any>(state as any, context as any)
    .addNode("a", node as never)
    .addEdge(START, "a")
    .compile({ checkpointer: new MemorySaver() });
  detached.push(() => void graph.detach());
  return graph;
}

function newThread() {
  return { configurable: { thread_id: `schemas-${++threads}` } };
}

/** The error of a promise, with the paths of its issues. */
async function failureOf(promise: Promise<unknown>): Promise<{ name: string; paths: unknown; error: any }> {
  try {
    await promise;
  } catch (error: any) {
    return { name: error.name, paths: error.issues?.map(({ path }: { path: unknown }) => path), error };
  }
  throw new Error("it did not fail");
}

describe.each([
  ["zod 4", zod4],
  ["zod 3", zod3 as unknown as typeof zod4],
])("a state of %s", (_, z) => {
  const State = z.object({ n: z.number(), s: z.string().optional() });

  test("checks what a node returns, and names the key", async () => {
    const failure = await failureOf(build(State, () => ({ n: "x" })).invoke({ n: 1 }, newThread()));
    expect(failure).toMatchObject({ name: expect.stringMatching(/ZodError$/), paths: [["n"]] });
    const commanded = build(State, () => new Command({ update: { n: null } }));
    expect((await failureOf(commanded.invoke({ n: 1 }, newThread()))).paths).toEqual([["n"]]);
  });

  test("keeps nothing of an update that has one wrong key", async () => {
    const thread = newThread();
    const graph = build(State, () => ({ s: "right", n: "x" }));
    await failureOf(graph.invoke({ n: 1 }, thread));
    expect((await graph.getState(thread)).values).toEqual({ n: 1 });
  });

  test("checks an input, a command and an update of the state", async () => {
    const graph = build(State, () => ({}));
    const thread = newThread();
    expect((await failureOf(graph.invoke({ n: "1" } as never, thread))).paths).toEqual([["n"]]);
    expect(await graph.invoke({ s: "a part" } as never, thread)).toEqual({ s: "a part" });
    expect((await failureOf(graph.updateState(thread, { n: "1" }, "a"))).paths).toEqual([["n"]]);
    const command = new Command({ update: { n: "1" } });
    expect((await failureOf(graph.invoke(command, thread))).paths).toEqual([["n"]]);
    await graph.updateState(thread, { n: 5 }, "a");
    expect((await graph.getState(thread)).values).toEqual({ n: 5, s: "a part" });
  });

  test("leaves out what an input that is declared apart may leave out", async () => {
    const schemas = { state: z.object({ n: z.number(), s: z.string() }), input: State };
    const graph = build(schemas, () => ({ s: "set" }));
    expect(await graph.invoke({ n: 1 }, newThread())).toEqual({ n: 1, s: "set" });
  });

  test("wants all keys of an input that is declared apart", async () => {
    const schemas = { state: State, input: z.object({ n: z.number(), s: z.string().default("yes") }) };
    const graph = build(schemas, ({ n, s }) => ({ s: `${n} ${s}` }));
    expect((await failureOf(graph.invoke({}, newThread()))).paths).toEqual([["n"]]);
    expect(await graph.invoke({ n: 1 }, newThread())).toEqual({ n: 1, s: "1 yes" });
  });

  test("writes what its schemas make of values", async () => {
    const Coerced = z.object({ n: z.coerce.number(), t: z.string().transform((text) => text.trim()) });
    const graph = build(Coerced, ({ n }) => ({ n: `${n}1`, t: " x " }));
    expect(await graph.invoke({ n: "4" }, newThread())).toEqual({ n: 41, t: "x" });
  });

  test("reads writes by the schema of the reducer, and overwriting values by that of the key", async () => {
    const Reduced = z.object({
      log: withLangGraph(z.array(z.string()), {
        reducer: {
          fn: (left: string[], right: string | string[]) => left.concat(right),
          schema: z.union([z.string(), z.array(z.string())]),
        },
        default: () => [],
      }),
    });
    expect(await build(Reduced, () => ({ log: "b" })).invoke({ log: ["a"] }, newThread())).toEqual({
      log: ["a", "b"],
    });
    const overwriting = build(Reduced, () => ({ log: new Overwrite(["c"]) }));
    expect(await overwriting.invoke({ log: "a" }, newThread())).toEqual({ log: ["c"] });
    for (const wrong of [5, new Overwrite("c")]) {
      const graph = build(Reduced, () => ({ log: wrong }));
      expect((await failureOf(graph.invoke({ log: "a" }, newThread()))).paths).toEqual([["log"]]);
    }
  });

  test("checks the context of a run", async () => {
    const Context = z.object({ user: z.string() });
    const graph = build(
      State,
      (_state, { context }) => ({ s: `${context.user} ${interrupt("?")}` }),
      Context,
    );
    const wrong = { ...newThread(), context: { user: 4 } };
    expect((await failureOf(graph.invoke({ n: 1 }, wrong as never))).paths).toEqual([["user"]]);
    const thread = newThread();
    expect((await failureOf(graph.invoke({ n: 1 }, thread))).paths).toEqual([["user"]]);
    const asked = await graph.invoke({ n: 1 }, { ...thread, context: { user: "ann" } } as never);
    expect(isInterrupted(asked)).toBe(true);
    const answer = new Command({ resume: "yes" });
    expect((await failureOf(graph.invoke(answer, thread))).paths).toEqual([["user"]]);
    const answered = await graph.invoke(answer, { ...thread, context: { user: "ann" } } as never);
    expect(answered).toMatchObject({ s: "ann yes" });
  });

  test("a node that catches nothing fails the run, and is not repeated", async () => {
    let attempts = 0;
    const graph = build(State, () => ({ n: `${++attempts}` }));
    await failureOf(graph.invoke({ n: 1 }, newThread()));
    expect(attempts).toBe(1);
  });
});

describe("a StateSchema", () => {
  const z = zod4;
  const State = new StateSchema({
    n: z.number(),
    log: new ReducedValue(
      z.array(z.string()).default(() => []),
      {
        inputSchema: z.string() as any,
        reducer: (left: string[], right: any) => [...left, right],
      },
    ),
    note: new UntrackedValue(z.number()),
  });

  test("checks what comes in and what nodes return", async () => {
    const right = build(State, () => ({ log: "x", note: 5 }));
    expect(await right.invoke({ n: 1 }, newThread())).toMatchObject({ n: 1, log: ["x"] });
    for (const [wrong, told] of [
      [{ n: "x" }, /n: .*expected number/],
      [{ log: 4 }, /log: .*expected string/],
      [{ note: "k" }, /note: .*expected number/],
      [{ n: new Overwrite("x") }, /n: .*expected number/],
    ] as const) {
      const graph = build(State, () => wrong);
      const { error } = await failureOf(graph.invoke({ n: 1 }, newThread()));
      expect(error).toBeInstanceOf(InvalidUpdateError);
      expect(error.message).toMatch(told);
      await expect(graph.invoke(wrong as never, newThread())).rejects.toThrow(told);
    }
  });

  test("tells what each option of a union does not take", async () => {
    const either = z.union([z.string(), z.object({ at: z.number() })]).optional();
    const graph = build(new StateSchema({ n: either }), () => ({ n: { at: "x" } }));
    await expect(graph.invoke({ n: "a" }, newThread())).rejects.toThrow(
      /n: Invalid input \(.*expected string, received object, or .*at: .*expected number, received string\)$/i,
    );
  });

  test("drops no value of a command that names a key twice", async () => {
    const twice = [
      ["log", "a"],
      ["log", "b"],
    ];
    const command = new Command({ update: twice as never, goto: "a" });
    await expect(build(State, () => ({})).invoke(command, newThread())).rejects.toThrow(
      '"log" appears twice',
    );
    const graph = build(State, () => new Command({ update: twice as never }));
    expect(await graph.invoke({ n: 1 }, newThread())).toMatchObject({ log: ["a", "b"] });
  });

  test("waits for schemas that take time", async () => {
    const even = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: async (value: unknown) =>
          Number(value) % 2 === 0
            ? { value }
            : { issues: [{ message: "not even", path: [{ key: "deep" }] }] },
      },
    };
    const graph = build(new StateSchema({ n: even }), ({ n }) => ({ n: n / 2 }));
    expect(await graph.invoke({ n: 4 }, newThread())).toEqual({ n: 2 });
    await expect(graph.invoke({ n: 2 }, newThread())).rejects.toThrow("n.deep: not even");
  });
});

test("pieces of a message that a node returns are stored as a message", async () => {
  const graph = build(MessagesAnnotation, () => ({
    messages: [new AIMessageChunk({ content: "hi", tool_call_chunks: [{ name: "t", args: "{}", id: "1" }] })],
  }));
  const { messages } = (await graph.invoke({ messages: [] }, newThread())) as any;
  expect(messages[0].constructor.name).toBe("AIMessage");
  expect(messages[0]).toMatchObject({ content: "hi", tool_calls: [{ name: "t", args: {}, id: "1" }] });
});

test("states without schemas take every value", async () => {
  const graph = build(Annotation.Root({ n: Annotation<number> }), () => ({ n: "x" }));
  expect(await graph.invoke({ n: 1 }, newThread())).toEqual({ n: "x" });
});

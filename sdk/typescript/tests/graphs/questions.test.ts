/** What nodes ask, and what becomes of it when their code runs again. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  AmbiguousResumeError,
  Annotation,
  Command,
  InterruptDismissed,
  interrupt,
  isInterrupted,
  MemorySaver,
  memo,
  NonDeterministicNode,
  NothingToResumeError,
  START,
  StateGraph,
  scope,
} from "../../src/index.js";

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const saver = new MemorySaver();
let threads = 0;

/** A graph of one node, and a thread of its own. */
function asking(node: (state: { log: string[] }) => unknown) {
  const graph = new StateGraph(State)
    .addNode("ask", node as never)
    .addEdge(START, "ask")
    .compile({ checkpointer: saver });
  return { graph, config: { configurable: { thread_id: `questions ${threads++}` } } };
}

function questionsOf(result: unknown): unknown[] {
  return isInterrupted(result) ? result.__interrupt__.map(({ value }) => value) : [];
}

describe("questions", () => {
  test("a question that has moved raises, with both places", async () => {
    let draws = 0;
    const { graph, config } = asking(() => {
      const isFirst = draws++ === 0;
      if (isFirst) interrupt("A");
      const scoped: string = interrupt("B");
      return { log: [scoped] };
    });
    await graph.invoke({}, config);
    // The branch is drawn anew: B stands where A was answered, and is asked in its place.
    const again = await graph.invoke(new Command({ resume: "for A" }), config);
    expect(questionsOf(again)).toEqual(["B"]);
  });

  test("an approval that has moved is refused", async () => {
    let draws = 0;
    const { graph, config } = asking(() => {
      const approval = { reason: "approval" };
      if (draws++ === 0) interrupt("delete A?", approval);
      return { log: [interrupt("delete B?", approval) as string] };
    });
    await graph.invoke({}, config);
    const refused = graph.invoke(new Command({ resume: "yes" }), config);
    await expect(refused).rejects.toThrow(NonDeterministicNode);
  });

  test("a question that became a memo is refused, and names both places", async () => {
    let passes = 0;
    const { graph, config } = asking(async () => {
      if (passes++ === 0) interrupt("A", { key: "same" });
      await memo("same", () => 1);
      return { log: [interrupt("B") as string] };
    });
    await graph.invoke({}, config);
    const refused = graph.invoke(new Command({ resume: "for A" }), config);
    await expect(refused).rejects.toThrow(
      /question number 1 of key "same", now it has memo number 1 of key "same"/,
    );
  });

  test("accepted drift uses the answer", async () => {
    let price = 10;
    const { graph, config } = asking(() => ({
      log: [interrupt({ price: price++ }, { drift: "accept" }) as string],
    }));
    await graph.invoke({}, config);
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ log: ["yes"] });
  });

  test("a part that may differ is left out of the comparison", async () => {
    let time = 1;
    const { graph, config } = asking(() => ({
      log: [interrupt({ what: "pay", time: time++ }, { drift: "fail", driftIgnore: ["/time"] }) as string],
    }));
    await graph.invoke({}, config);
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ log: ["yes"] });
  });

  test("a caught question is asked all the same", async () => {
    const { graph, config } = asking(() => {
      try {
        return { log: [interrupt("sure?") as string] };
      } catch {
        return { log: ["swallowed"] };
      }
    });
    expect(questionsOf(await graph.invoke({}, config))).toEqual(["sure?"]);
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ log: ["yes"] });
  });

  test("questions side by side are asked together, and answered by their ids", async () => {
    const { graph, config } = asking(async () => {
      const one = scope("one", async () => interrupt("first") as string);
      const two = scope("two", async () => interrupt("second") as string);
      return { log: await Promise.all([one, two]) };
    });
    const asked = await graph.invoke({}, config);
    expect(questionsOf(asked)).toEqual(["first", "second"]);
    await expect(graph.invoke(new Command({ resume: "x" }), config)).rejects.toThrow(AmbiguousResumeError);
    const open = isInterrupted(asked) ? asked.__interrupt__ : [];
    const answers = Object.fromEntries(open.map(({ id, value }) => [id, `to ${value}`]));
    const done = await graph.invoke(new Command({ resume: answers }), config);
    expect(done).toEqual({ log: ["to first", "to second"] });
  });

  test("a keyed question keeps its answer when others come before it", async () => {
    let passes = 0;
    const { graph, config } = asking(() => {
      if (passes++ > 0) interrupt("new", { key: "new" });
      return { log: [interrupt("old", { key: "old" }) as string] };
    });
    await graph.invoke({}, config);
    expect(questionsOf(await graph.invoke(new Command({ resume: "kept" }), config))).toEqual(["new"]);
    expect(await graph.invoke(new Command({ resume: "more" }), config)).toEqual({ log: ["kept"] });
  });

  test("a memo runs once, whatever runs again", async () => {
    let charges = 0;
    const keys = new Set<string>();
    const { graph, config } = asking(async () => {
      const charge = await memo("charge", ({ idempotencyKey }) => {
        keys.add(idempotencyKey);
        return `charge ${++charges}`;
      });
      return { log: [charge, interrupt("ok?") as string] };
    });
    await graph.invoke({}, config);
    expect(await graph.invoke(new Command({ resume: "yes" }), config)).toEqual({ log: ["charge 1", "yes"] });
    expect([charges, keys.size]).toEqual([1, 1]);
  });

  test("a schema refuses a wrong answer before the node runs, and reads a right one", async () => {
    let passes = 0;
    const { graph, config } = asking(() => {
      passes++;
      const { age } = interrupt<string, { age: number }>("age?", {
        responseSchema: z.object({ age: z.int() }),
      });
      return { log: [`${age + 1}`] };
    });
    await graph.invoke({}, config);
    await expect(graph.invoke(new Command({ resume: { age: "old" } }), config)).rejects.toThrow(/age/);
    expect(passes).toBe(1);
    expect(await graph.invoke(new Command({ resume: { age: 41 } }), config)).toEqual({ log: ["42"] });
  });

  test("an object with keys like ids is an answer, unless one is of a question of the thread", async () => {
    const { graph, config } = asking(() => ({ log: [JSON.stringify(interrupt("?"))] }));
    await graph.invoke({}, config);
    const answer = { [`${"0".repeat(31)}1`]: "yes" };
    expect(await graph.invoke(new Command({ resume: answer }), config)).toEqual({
      log: [JSON.stringify(answer)],
    });
  });

  test("null is an answer, and so is an empty object", async () => {
    const { graph, config } = asking(() => ({ log: [JSON.stringify([interrupt("a"), interrupt("b")])] }));
    await graph.invoke({}, config);
    await graph.invoke(new Command({ resume: null }), config);
    expect(await graph.invoke(new Command({ resume: {} }), config)).toEqual({ log: ["[null,{}]"] });
  });

  test("an answer that nothing waits for is refused", async () => {
    const { graph, config } = asking(() => ({ log: ["done"] }));
    await graph.invoke({}, config);
    await expect(graph.invoke(new Command({ resume: "x" }), config)).rejects.toThrow(NothingToResumeError);
  });

  test("without a checkpointer there is no question", async () => {
    const graph = new StateGraph(State)
      .addNode("ask", () => ({ log: [interrupt("?") as string] }))
      .addEdge(START, "ask")
      .compile();
    await expect(graph.invoke({})).rejects.toMatchObject({
      name: "GraphValueError",
      lc_error_code: "MISSING_CHECKPOINTER",
    });
  });

  test.each([
    [{ drift: "never" }, 'drift must be one of "fail", "ask_again", "accept", not "never"'],
    [{ assignee: ["ann"] }, 'interrupt() has no "assignee"; it takes responseSchema, schema, key'],
    [{ key: 5 }, "key must be a text, not 5"],
    [{ assignees: "ann" }, 'assignees must be a list of texts, like ["ann"], not "ann"'],
    [{ ttl: "5m" }, 'ttl must be a number of milliseconds, 0 or more, not "5m"'],
    [{ people: { group: ["finance"] } }, 'people has no "group"; it takes users, groups, approvals'],
    [{ people: { groups: "finance" } }, 'people.groups must be a list of texts, like ["ann"], not "finance"'],
    [{ people: { approvals: "2" } }, 'people.approvals must be a whole number, 0 or more, not "2"'],
    [{ people: { exclusive: "yes" } }, 'people.exclusive must be true or false, not "yes"'],
    [{ people: ["ann"] }, "people must be an object, not such a list"],
    [{ steps: { remind: { after: 1 } } }, "steps must be a list, not an object with remind"],
    [
      { steps: [{ after: 5, remind: {} }] },
      "steps[0] must be { remind: { after } } or { escalate: { after, groups } }, not an object with after, remind",
    ],
    [
      { steps: [{ remind: {} }] },
      "steps[0].remind.after must be a number of milliseconds, 0 or more, not undefined",
    ],
    [{ steps: [{ escalate: { after: 1, priority: "top" } }] }, "steps[0].escalate.priority must be one of"],
    [{ steps: [{ remind: { after: 1, priority: "high" } }] }, 'steps[0].remind has no "priority"'],
    [7, "the options of interrupt() must be an object, not 7"],
    [{ secret: ["/card", "/card/number"] }, "overlap"],
  ])("an option that a question does not take is refused: %j", async (options, problem) => {
    const { graph, config } = asking(() => interrupt({ card: 1 }, options as never));
    const refused = await graph.invoke({}, config).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TypeError);
    expect((refused as TypeError).message).toContain(problem);
  });

  test("options that are undefined are as if they were left out", async () => {
    const options = {
      key: undefined,
      people: undefined,
      steps: [{ remind: { after: 1, users: undefined } }],
      ttl: 9e9,
    };
    const { graph, config } = asking(() => interrupt("x", options as never));
    expect(questionsOf(await graph.invoke({}, config))).toEqual(["x"]);
  });

  test("a dismissal has its reason", () => expect(new InterruptDismissed("no").reason).toBe("no"));
});

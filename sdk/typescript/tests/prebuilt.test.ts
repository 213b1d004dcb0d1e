import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Command, MemorySaver, MessagesAnnotation, START, StateGraph } from "../src/index.js";
import {
  addHumanInTheLoop,
  repairChatHistory,
  ToolApproval,
  ToolNode,
  toolsCondition,
  validateChatHistory,
} from "../src/prebuilt/index.js";

const made: string[] = [];
const pay = tool(
  ({ amount, to }) => {
    made.push(`${amount} to ${to}`);
    return `paid ${amount} to ${to}`;
  },
  { name: "pay", description: "Pays", schema: z.object({ amount: z.number(), to: z.string() }) },
);
const fail = tool(
  () => {
    throw new Error("out of order");
  },
  { name: "fail", description: "Fails", schema: z.object({}) },
);

function askFor(...calls: { name: string; args: Record<string, unknown>; id: string }[]): AIMessage {
  return new AIMessage({
    content: "",
    tool_calls: calls.map((call) => ({ ...call, type: "tool_call" as const })),
  });
}

const call = (id: string, amount: number) => ({ name: "pay", args: { amount, to: id }, id });
const contents = (messages: ToolMessage[]) => messages.map(({ content, status }) => `${status}: ${content}`);

describe("ToolNode", () => {
  test("answers the calls of the last message, outside of a graph", async () => {
    const node = new ToolNode([pay, fail]);
    const calls = [call("a", 1), { name: "fail", args: {}, id: "f" }, { name: "none", args: {}, id: "n" }];
    const { messages } = await node.invoke({ messages: [new HumanMessage("pay"), askFor(...calls)] });
    expect(messages[0]).toBeInstanceOf(ToolMessage);
    expect(messages.map(({ tool_call_id }: ToolMessage) => tool_call_id)).toEqual(["a", "f", "n"]);
    expect(contents(messages)).toEqual([
      "success: paid 1 to a",
      "error: Error: out of order\n Please fix your mistakes.",
      "error: Error: none is not a valid tool, try one of [pay, fail].",
    ]);
    expect(await node.invoke([askFor(call("b", 2))])).toHaveLength(1);
    await expect(
      new ToolNode([fail], { handleToolErrors: false }).invoke([askFor(calls[1] as never)]),
    ).rejects.toThrow("out of order");
    await expect(node.invoke({ messages: [] })).rejects.toThrow(/only accepts AIMessages/);
  });

  test("toolsCondition", () => {
    expect(toolsCondition({ messages: [askFor(call("a", 1))] })).toBe("tools");
    expect(toolsCondition([new AIMessage("done")])).toBe("__end__");
  });
});

function createGraph(node: ToolNode, ...calls: Parameters<typeof askFor>) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", () => ({ messages: [askFor(...calls)] }))
    .addNode("tools", node)
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .compile({ checkpointer: new MemorySaver() });
}

describe("people decide about tools", () => {
  test("each call asks its own question, and what has run does not run again", async () => {
    made.length = 0;
    const approval = new ToolApproval([pay], { message: ({ args }) => `Pay ${args.amount}?` });
    const free = tool(({ n }) => void made.push(`free ${n}`), {
      name: "free",
      description: "",
      schema: z.object({ n: z.number() }),
    });
    const node = new ToolNode([pay, free], { wrapToolCall: approval.wrapToolCall });
    const graph = createGraph(
      node,
      call("a", 1),
      call("b", 2),
      { name: "free", args: { n: 7 }, id: "x" },
      call("c", 3),
      call("d", 4),
    );
    const config = { configurable: { thread_id: "approval" } };
    const asked = await graph.invoke({ messages: [new HumanMessage("go")] }, config);
    const questions = (asked as any).__interrupt__ as { id: string; value: { args: { to: string } } }[];
    expect(questions.map(({ value }) => value)).toEqual(
      ["a", "b", "c", "d"].map((id, at) => ({
        profile: "tool-approval/1",
        tool_call_id: id,
        name: "pay",
        args: { amount: at + 1, to: id },
      })),
    );
    const decisions = [
      { type: "approve" },
      { type: "edit", args: { amount: 20, to: "b" } },
      { type: "reject", message: "Too much." },
      { type: "respond", message: "Paid in cash." },
    ];
    const answers = Object.fromEntries(questions.map(({ id }, at) => [id, decisions[at]]));
    const done = await graph.invoke(new Command({ resume: answers }), config);
    expect(made.sort()).toEqual(["1 to a", "20 to b", "free 7"]);
    const messages = done.messages.slice(2) as ToolMessage[];
    expect(messages.map(({ tool_call_id }) => tool_call_id)).toEqual(["a", "b", "x", "c", "d"]);
    expect(contents(messages).map((text) => text.replace(/\s+/g, " "))).toEqual([
      "success: paid 1 to a",
      expect.stringMatching(/^success: A person has changed this call of pay .*"amount":20.* paid 20 to b$/),
      expect.stringMatching(/^success:/),
      expect.stringMatching(/^error: A person has rejected this call of pay.* Too much\.$/),
      "success: Paid in cash.",
    ]);
  });

  test("the server refuses what is no decision", async () => {
    const approval = new ToolApproval([pay], { allowedDecisions: ["approve", "edit"] });
    const graph = createGraph(new ToolNode([pay], { wrapToolCall: approval.wrapToolCall }), call("a", 1));
    const config = { configurable: { thread_id: "refused" } };
    await graph.invoke({ messages: [] }, config);
    for (const resume of [
      { type: "reject" },
      { type: "edit" },
      { type: "edit", args: { amount: "2", to: "b" } },
      1,
    ]) {
      await expect(graph.invoke(new Command({ resume }), config)).rejects.toMatchObject({
        name: "InvalidResumeError",
      });
    }
    const done = await graph.invoke(new Command({ resume: { type: "approve" } }), config);
    expect(contents(done.messages.slice(1) as ToolMessage[])).toEqual(["success: paid 1 to a"]);
  });

  test("a review before a tool", async () => {
    const graph = createGraph(new ToolNode([addHumanInTheLoop(pay)]), call("a", 1));
    const config = { configurable: { thread_id: "review" } };
    const asked = await graph.invoke({ messages: [] }, config);
    expect((asked as any).__interrupt__[0].value).toEqual({
      action_request: { action: "pay", args: { amount: 1, to: "a" } },
      config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
      description: "Please review the tool call",
    });
    const resume = [{ type: "edit", args: { args: { amount: 5, to: "a" } } }];
    const done = await graph.invoke(new Command({ resume }), config);
    expect(contents(done.messages.slice(1) as ToolMessage[])).toEqual(["success: paid 5 to a"]);
  });

  test("a policy that can't be right", () => {
    expect(() => new ToolApproval([])).toThrow(/want at least one tool/);
    expect(() => new ToolApproval([pay], { allowedDecisions: [] })).toThrow(/approve, edit, reject, respond/);
    expect(() => new ToolApproval([pay], { people: { group: ["finance"] } as never })).toThrow(
      /people has no "group"/,
    );
  });
});

describe("chats with calls that have no answer", () => {
  const chat = [askFor(call("a", 1), call("b", 2)), new HumanMessage("wait"), new ToolMessage("2", "b")];

  test("are found and repaired", () => {
    expect(() => validateChatHistory(chat)).toThrow(
      "1 tool calls have no tool message that answers them: pay (a)",
    );
    const repaired = repairChatHistory(chat);
    expect(repaired.map((message: any) => message.tool_call_id ?? message._getType())).toEqual([
      "ai",
      "a",
      "b",
      "human",
    ]);
    expect(() => validateChatHistory(repaired)).not.toThrow();
  });
});

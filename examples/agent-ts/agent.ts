/** An agent that cancels orders. A person decides about every call of its tool. */
import type { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "graphd";
import { ToolApproval, ToolNode, toolsCondition } from "graphd/prebuilt";
import { z } from "zod";
import { createModel } from "./model.ts";

const cancelOrder = tool(({ order }) => `Order ${order} is cancelled.`, {
  name: "cancel_order",
  description: "Cancels an order",
  schema: z.object({ order: z.number().int() }),
});

const approval = new ToolApproval([cancelOrder], { message: ({ args }) => `Cancel order ${args.order}?` });

/** The graph, whose nodes run in this process. Its threads are in the server. */
export function compileAgent(server: string) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }, config) => {
      const said = (await createModel(messages).invoke(messages, config)) as AIMessage;
      return { messages: [said] };
    })
    .addNode("tools", new ToolNode([cancelOrder], { wrapToolCall: approval.wrapToolCall }))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model")
    .compile({ server, name: "agent-ts" });
}

/** A model that only pretends: LangChain's fake one, which says what it is told to. */
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { FakeStreamingChatModel } from "@langchain/core/utils/testing";

/** What the model says to a chat: it calls a tool for each order that the customer names, then sums up. */
export function createModel(messages: BaseMessage[]): FakeStreamingChatModel {
  const last = messages.at(-1);
  const chunks = last?.getType() === "human" ? callTools(last.text) : sumUp(messages);
  return new FakeStreamingChatModel({ chunks });
}

function callTools(text: string): AIMessageChunk[] {
  const orders = text.match(/\d+/g) ?? [];
  const calls = orders.map((order, index) => ({
    name: "cancel_order",
    args: JSON.stringify({ order: Number(order) }),
    id: `call-${crypto.randomUUID()}`,
    index,
    type: "tool_call_chunk" as const,
  }));
  const said = orders.length > 0 ? "Let me see what I can do. " : "Which order is it? ";
  return [...speak(said), new AIMessageChunk({ content: "", tool_call_chunks: calls })];
}

function sumUp(messages: BaseMessage[]): AIMessageChunk[] {
  const answers = messages.slice(messages.findLastIndex((message) => message.getType() === "ai") + 1);
  return speak(answers.map((message) => message.text).join(" "));
}

/** A piece for each word, as models speak. */
function speak(text: string): AIMessageChunk[] {
  return (text.match(/\S+\s*/g) ?? []).map((content) => new AIMessageChunk({ content }));
}

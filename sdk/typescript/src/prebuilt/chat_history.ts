/**
 * Chats in which a tool call was left without an answer. Models refuse them. They come about when a run is stopped,
 * or when a message is written into the chat between a call and its answer.
 */
import { BaseLangGraphError } from "../errors/index.js";
import { createToolMessage, fieldOfMessage, type ToolCall, typeOfMessage } from "./tool_calls.js";

/** The tool calls that no tool message answers, in order. */
export function unansweredToolCalls(messages: readonly unknown[]): ToolCall[] {
  const answered = new Set(messages.map((message) => fieldOfMessage(message, "tool_call_id")));
  return messages.flatMap(callsOf).filter((call) => !answered.has(call.id));
}

/** Throws when a tool call has no answer. */
export function validateChatHistory(messages: readonly unknown[]): void {
  const left = unansweredToolCalls(messages);
  if (left.length === 0) return;
  const names = left.slice(0, 5).map(({ name, id }) => `${name} (${id})`);
  throw new BaseLangGraphError(
    `${left.length} tool calls have no tool message that answers them: ${names.join(", ")}`,
    { lc_error_code: "INVALID_CHAT_HISTORY" },
  );
}

/**
 * The same chat with an answer for every tool call, each after its call. Answers that stand elsewhere are moved;
 * answers to no call are left out.
 */
export function repairChatHistory(
  messages: readonly unknown[],
  content = "The call was stopped before it had a result.",
): unknown[] {
  const answers = new Map<unknown, unknown>();
  for (const message of messages.filter((one) => typeOfMessage(one) === "tool")) {
    const id = fieldOfMessage(message, "tool_call_id");
    if (!answers.has(id)) answers.set(id, message);
  }
  return messages
    .filter((message) => typeOfMessage(message) !== "tool")
    .flatMap((message) => [
      message,
      ...callsOf(message).map((call) => answers.get(call.id) ?? createToolMessage(call, content, "error")),
    ]);
}

function callsOf(message: unknown): ToolCall[] {
  if (!["ai", "assistant"].includes(typeOfMessage(message))) return [];
  return fieldOfMessage(message, "tool_calls") ?? [];
}

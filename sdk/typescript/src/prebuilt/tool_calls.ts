/** Calls of tools, and the messages that answer them. */
import { encode } from "../codec/index.js";
import { restoreMessage } from "../messages/restored_message.js";
import { isMessage } from "../messages/stored_message.js";

/** A call as messages of models have it. */
export type ToolCall = { name: string; args: Record<string, any>; id?: string; type?: "tool_call" };

/** A tool: one of LangChain, or an object with the same. */
export type Tool = {
  name: string;
  description?: string | undefined;
  /** Zod or JSON Schema of its arguments. */
  schema?: unknown;
  invoke(call: any, config?: any): unknown;
};

type ToolMessage = { content: unknown; tool_call_id?: string };

/** The id of a call, which tells it from others. */
export function idOfCall(call: ToolCall): string {
  if (call.id) return call.id;
  throw new TypeError(`the call of the tool ${call.name} has no id, and a model needs it with the result`);
}

/** The message that answers a call. It is an object of LangChain where the program has it. */
export function createToolMessage(
  call: ToolCall,
  content: unknown,
  status: "success" | "error",
): ToolMessage {
  const text = typeof content === "string" || isContentList(content) ? content : encode(content ?? "");
  const fields = { type: "tool", content: text, name: call.name, tool_call_id: idOfCall(call), status };
  return restoreMessage(fields) as ToolMessage;
}

function isContentList(content: unknown): boolean {
  return (
    Array.isArray(content) &&
    content.every((part) => typeof part === "object" && part !== null && "type" in part)
  );
}

/** The kind of a message object, or of a stored message. */
export function typeOfMessage(message: unknown): string {
  if (isMessage(message)) return message._getType();
  const { type, role } = (message ?? {}) as { type?: unknown; role?: unknown };
  return String(type ?? role ?? "");
}

/** What a message has under a name. */
export function fieldOfMessage(message: unknown, field: string): any {
  return (message as Record<string, unknown> | null | undefined)?.[field];
}

/** Whether a value answers a call: a tool message, or a command. */
export function isAnswer(value: unknown): boolean {
  return typeOfMessage(value) === "tool" || (value as { lg_name?: unknown } | null)?.lg_name === "Command";
}

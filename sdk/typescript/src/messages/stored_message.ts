/** Messages of LangChain as they are stored: plain fields with a `type`, the same in every language. */

export type StoredMessage = { type: string; content: unknown } & Record<string, unknown>;

/** What messages have of which other code may make use; all but these stays in the process. */
const FIELDS = [
  "name",
  "id",
  "additional_kwargs",
  "response_metadata",
  "tool_calls",
  "invalid_tool_calls",
  "tool_call_chunks",
  "usage_metadata",
  "tool_call_id",
  "status",
  "artifact",
  "role",
] as const;

/** Whether a value is a message object. It may be of any copy and version of LangChain. */
export function isMessage(value: unknown): value is { _getType(): string; content: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const fields = value as { _getType?: unknown; content?: unknown };
  return typeof fields._getType === "function" && "content" in fields;
}

/** A message as it is stored: what is set, and nothing else. */
export function toStoredMessage(message: { _getType(): string; content: unknown }): StoredMessage {
  const stored: StoredMessage = { type: typeOf(message), content: message.content };
  for (const field of FIELDS) {
    const value = (message as Record<string, unknown>)[field];
    if (!isEmpty(value)) stored[field] = value;
  }
  return stored;
}

/** Chunks have a type of their own in Python, where it is the name of their class. */
function typeOf(message: { _getType(): string }): string {
  const type = message._getType();
  const name = (message.constructor as { lc_name?(): string }).lc_name?.() ?? "";
  return type === "ai" && name === "AIMessageChunk" ? name : type;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.keys(value).length === 0;
}

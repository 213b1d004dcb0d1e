/** Whatever counts as a message, in the form that is stored. */
import { isMessage, type StoredMessage, toStoredMessage } from "./stored_message.js";

const ROLES: Readonly<Record<string, string>> = { user: "human", assistant: "ai", developer: "system" };

/** A whole message in its stored form: of an object, a text, a pair of role and content, or fields. */
export function coerceMessage(given: unknown): StoredMessage {
  if (isMessage(given)) return withoutPieces(toStoredMessage(given));
  if (typeof given === "string") return { type: "human", content: given };
  if (Array.isArray(given) && given.length === 2 && typeof given[0] === "string") {
    return { type: typeOf(given[0]), content: given[1] };
  }
  if (typeof given === "object" && given !== null) return coerceFields(given as Record<string, unknown>);
  throw new TypeError(`${JSON.stringify(given) ?? typeof given} is no message: use { role, content }`);
}

/** What is gathered of the pieces of a stream is a message like others, once it is in a list. */
function withoutPieces({ tool_call_chunks: _, ...message }: StoredMessage): StoredMessage {
  return message.type === "AIMessageChunk" ? { ...message, type: "ai" } : message;
}

function typeOf(role: string): string {
  return ROLES[role] ?? role;
}

function coerceFields(given: Record<string, unknown>): StoredMessage {
  const { role, ...fields } = given;
  const type = typeof fields.type === "string" ? fields.type : role;
  if (typeof type !== "string") {
    throw new TypeError(`a message needs a role or a type: ${JSON.stringify(Object.keys(given))} has none`);
  }
  return withoutPieces({ ...fields, type: typeOf(type), content: fields.content ?? "" });
}

/** Messages written to a key: one, or a list of them. */
export function coerceMessages(given: unknown): StoredMessage[] {
  const list = Array.isArray(given) && !isPair(given) ? given : [given];
  return list.map((one, index) => {
    try {
      return coerceMessage(one);
    } catch (error) {
      throw new TypeError(`message ${index}: ${(error as Error).message}`);
    }
  });
}

/** A role and a content. Two texts may as well be two messages. */
function isPair(given: unknown[]): boolean {
  return (
    given.length === 2 &&
    typeof given[0] === "string" &&
    (given[0] in ROLES || /^(human|ai|system|tool)$/.test(given[0]))
  );
}

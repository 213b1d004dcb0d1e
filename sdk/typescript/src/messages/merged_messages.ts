/** Merges lists of messages, as the server does for keys with the reducer `messages`. */
import { REMOVE_ALL_MESSAGES } from "../constants.js";
import { coerceMessages } from "./coerced_message.js";
import { restoreMessage } from "./restored_message.js";
import type { StoredMessage } from "./stored_message.js";

/** Known ids are replaced, new ones are appended, and RemoveMessage removes. */
export function mergeMessages(left: unknown, right: unknown): StoredMessage[] {
  const current = coerceMessages(left).map(withId);
  const update = coerceMessages(right).map(withId);
  const cleared = update.findLastIndex(({ type, id }) => type === "remove" && id === REMOVE_ALL_MESSAGES);
  if (cleared >= 0) return update.slice(cleared + 1);
  const merged = new Map(current.map((message) => [message.id, message]));
  const gone = new Set<unknown>();
  for (const message of update) {
    const { id, type } = message;
    if (type !== "remove") {
      gone.delete(id);
      merged.set(id, message);
    } else if (merged.has(id)) {
      gone.add(id);
    } else {
      throw new Error(`Attempting to delete a message with an ID that doesn't exist: ${String(id)}`);
    }
  }
  return [...merged.values()].filter(({ id }) => !gone.has(id));
}

function withId(message: StoredMessage): StoredMessage {
  return message.id ? message : { ...message, id: crypto.randomUUID() };
}

/** The same, with objects of LangChain where they are loaded. */
export function mergeMessageObjects(left: unknown, right: unknown): unknown[] {
  return mergeMessages(left, right).map(restoreMessage);
}

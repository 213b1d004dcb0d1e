import { coerceMessage } from "../messages/coerced_message.js";
import { requiredTask } from "./task.js";

/** Shows a message to followers at once, and writes it to the state before what the node returns. */
export function pushMessage(
  message: unknown,
  options: { stateKey?: string | null; userMessageName?: string } = {},
): unknown {
  const task = requiredTask("pushMessage()");
  const stored = coerceMessage(message);
  if (!stored.id) throw new TypeError("pushMessage() needs a message with an id");
  const { stateKey = "messages" } = options;
  if (stateKey !== null) task.pushed.push([stateKey, stored]);
  task.host.emitEvent("messages", "", stored);
  return message;
}

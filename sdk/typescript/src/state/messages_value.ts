/** Keys of a `StateSchema` with a list of messages. */
import type { BaseMessage } from "@langchain/core/messages";
import { type Messages, messagesStateReducer } from "./messages.js";
import type { StandardSchema } from "./standard_schema.js";
import { ReducedValue } from "./state_schema.js";

/** A list of messages, as far as it is checked: the reducer tells what is no message. */
const anyMessages: StandardSchema<any, BaseMessage[]> = {
  "~standard": { version: 1, vendor: "graphd", validate: (value) => ({ value: value ?? [] }) },
};
/** One message or several, as far as that is checked. */
const anyWrite: StandardSchema<any, Messages> = {
  "~standard": { version: 1, vendor: "graphd", validate: (value) => ({ value }) },
};

/** `new StateSchema({ messages: MessagesValue })`: merged by their ids, in the server. */
export const MessagesValue: ReducedValue<BaseMessage[], Messages> = new ReducedValue(anyMessages, {
  inputSchema: anyWrite,
  reducer: messagesStateReducer as (current: BaseMessage[], update: Messages) => BaseMessage[],
});
/** The same: the reducer of messages runs in the server in any case. */
export const MessagesDeltaValue: typeof MessagesValue = MessagesValue;

/** Merges several writes into a list of messages. */
export function messagesDeltaReducer(current: BaseMessage[], writes: Messages[]): BaseMessage[] {
  return writes.reduce<BaseMessage[]>((merged, write) => messagesStateReducer(merged, write), current);
}

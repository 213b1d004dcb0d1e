/** States with a list of messages. */
import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
import { type BaseChannel, markServerReducer } from "../channels/index.js";
import { mergeMessageObjects } from "../messages/merged_messages.js";
import { Annotation, type AnnotationRoot } from "./annotation.js";
import type { ZodMeta } from "./zod_registry.js";

/** What may be written to a list of messages: one, or several. */
export type Messages = BaseMessage | BaseMessageLike | (BaseMessage | BaseMessageLike)[];

/** Merges messages by their ids. As the reducer of a key it runs in the server. */
export const messagesStateReducer: (left: Messages, right: Messages) => BaseMessage[] = markServerReducer(
  (left: Messages, right: Messages): BaseMessage[] => mergeMessageObjects(left, right) as BaseMessage[],
  "messages",
);

/** The older name. */
export const addMessages: typeof messagesStateReducer = messagesStateReducer;

type MessagesDefinition = { messages: BaseChannel<BaseMessage[], Messages> };

/** A state with the key `messages`. */
export const MessagesAnnotation: AnnotationRoot<MessagesDefinition> = Annotation.Root({
  messages: Annotation<BaseMessage[], Messages>({ reducer: messagesStateReducer as any, default: () => [] }),
});

/** For a zod key with messages: `z.custom<BaseMessage[]>().register(registry, MessagesZodMeta)`. */
export const MessagesZodMeta: ZodMeta<BaseMessage[], Messages> & {
  reducer: { fn: typeof messagesStateReducer };
} = {
  reducer: { fn: messagesStateReducer },
  default: () => [],
  jsonSchemaExtra: { langgraph_type: "messages" },
};

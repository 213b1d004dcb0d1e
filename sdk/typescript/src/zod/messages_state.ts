import type { BaseMessage } from "@langchain/core/messages";
import { z } from "zod/v4";
import { MessagesZodMeta, withLangGraph } from "../state/index.js";

const messages = withLangGraph(z.custom<BaseMessage[]>(), MessagesZodMeta);

/** A state with the key `messages`: extend it by keys of one's own. */
export const MessagesZodState = z.object({ messages });

import type { BaseMessage } from "@langchain/core/messages";
import { z } from "zod/v4";
import { MessagesZodMeta, metaRegistry } from "../state/index.js";

const messages = z.custom<BaseMessage[]>();
metaRegistry.add(messages, MessagesZodMeta);

/** A state with the key `messages`: extend it by keys of one's own. */
export const MessagesZodState = z.object({ messages });

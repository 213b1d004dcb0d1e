/** Stored messages as objects of LangChain again, where the program has LangChain. */

type MessageClass = new (fields: Record<string, unknown>) => unknown;
type MessageModule = Record<string, unknown> & {
  convertToChunk?: unknown;
  coerceMessageLikeToMessage?: (message: unknown) => unknown;
};

const CLASSES: Readonly<Record<string, string>> = {
  human: "HumanMessage",
  ai: "AIMessage",
  AIMessageChunk: "AIMessageChunk",
  system: "SystemMessage",
  tool: "ToolMessage",
  function: "FunctionMessage",
  remove: "RemoveMessage",
  chat: "ChatMessage",
};

const HINT = new RegExp(`"type":"(${Object.keys(CLASSES).join("|")})"`);

const KEY = Symbol.for("graphd.message_classes");
type Loaded = { module?: MessageModule | undefined; loading?: Promise<void> };
const shared = globalThis as { [KEY]?: Loaded };
shared[KEY] ??= {};
const loaded: Loaded = shared[KEY];

/** Loads the classes of messages. Without LangChain messages stay plain objects. */
export async function loadMessageClasses(): Promise<void> {
  loaded.loading ??= import("@langchain/core/messages").then(
    (module) => {
      loaded.module = module as unknown as MessageModule;
    },
    () => {},
  );
  await loaded.loading;
}

/** Whether JSON text may have messages in it. */
export function mayHaveMessages(text: string): boolean {
  return HINT.test(text);
}

/** A value with its stored messages as objects. `loadMessageClasses` comes before it. */
export function restoreMessages(value: unknown): unknown {
  if (loaded.module === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(restoreMessages);
  const fields = value as Record<string, unknown>;
  if (typeof fields.type === "string" && fields.type in CLASSES && "content" in fields) {
    return restoreMessage(fields);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(fields).map(([key, item]) => [key, restoreMessages(item)]));
}

/** A stored message as an object. What can't be one came from another client, and stays as it is. */
export function restoreMessage(stored: Record<string, unknown>): unknown {
  const name = CLASSES[String(stored.type)];
  const kind = name === undefined ? undefined : (loaded.module?.[name] as MessageClass | undefined);
  if (kind === undefined) return stored;
  const { type: _, ...fields } = stored;
  try {
    return new kind(fields);
  } catch {
    return stored;
  }
}

/** Tokens of LangChain's chat models as events, where LangChain is installed. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Channel } from "../_gen/graphd/v1/event_pb.js";
import { TAG_NOSTREAM } from "../constants.js";
import { isMessage, type StoredMessage, toStoredMessage } from "../messages/stored_message.js";
import type { CurrentTask } from "../runtime/index.js";

type Message = { _getType(): string; content: unknown; id?: string };
type Metadata = Record<string, unknown>;
type Provider = {
  initializeGlobalInstance(storage: unknown): void;
  runWithConfig<T>(config: unknown, code: () => T): T;
};

let provider: Promise<Provider | undefined> | undefined;

/** What carries the config of a node to the models that it calls without one. */
function loadProvider(): Promise<Provider | undefined> {
  provider ??= import("@langchain/core/singletons").then(
    (module) => {
      const found = module.AsyncLocalStorageProviderSingleton as unknown as Provider;
      found.initializeGlobalInstance(new AsyncLocalStorage());
      return found;
    },
    () => undefined,
  );
  return provider;
}

/** Runs the code of a node so that models in it tell the handlers of its config, and emit their tokens. */
export function withTokens(task: CurrentTask, wanted: readonly Channel[], code: () => unknown): unknown {
  const emits = wanted.includes(Channel.MESSAGES);
  if (!emits && task.config.callbacks === undefined) return code();
  return loadProvider().then((found) => {
    if (found === undefined) return code();
    if (emits) task.config.callbacks = addHandler(task.config.callbacks, new TokenHandler(task));
    return found.runWithConfig(task.config, code);
  });
}

function addHandler(callbacks: unknown, handler: TokenHandler): unknown {
  const manager = callbacks as { copy?: (handlers: unknown[]) => unknown } | undefined;
  if (typeof manager?.copy === "function") return manager.copy([handler]);
  return [...((callbacks as unknown[] | undefined) ?? []), handler];
}

/** Emits what a model says as it says it; a message that was not streamed is emitted once it is there. */
class TokenHandler {
  readonly name = "graphd_tokens";
  /** Makes models stream when they are invoked. */
  readonly lc_prefer_streaming = true;
  readonly awaitHandlers = true;
  private readonly metadata = new Map<string, Metadata | undefined>();
  private readonly streamed = new Set<string>();

  constructor(private readonly task: CurrentTask) {}

  handleChatModelStart(
    _model: unknown,
    _messages: unknown,
    runId: string,
    _parentRunId?: string,
    _extra?: unknown,
    tags: string[] = [],
    metadata: Metadata = {},
  ): void {
    const isSilent = tags.includes(TAG_NOSTREAM) || tags.includes("nostream");
    this.metadata.set(runId, isSilent ? undefined : { ...metadata, tags });
  }

  handleLLMNewToken(
    token: string,
    _index: unknown,
    runId: string,
    _parentRunId?: string,
    _tags?: string[],
    fields?: { chunk?: { message?: unknown } },
  ): void {
    const message = fields?.chunk?.message;
    this.streamed.add(runId);
    if (isMessage(message)) this.emit(runId, message as Message);
    // Some models tell the text alone.
    else this.emitStored(runId, { type: "AIMessageChunk", content: token, id: `run-${runId}` });
  }

  handleLLMEnd(output: { generations?: { message?: unknown }[][] }, runId: string): void {
    const message = output.generations?.[0]?.[0]?.message;
    if (isMessage(message) && !this.streamed.has(runId)) this.emit(runId, message as Message);
    this.metadata.delete(runId);
  }

  handleLLMError(_error: unknown, runId: string): void {
    this.metadata.delete(runId);
  }

  private emit(runId: string, message: Message): void {
    message.id ??= `run-${runId}`; // the node returns this very object
    this.emitStored(runId, toStoredMessage(message));
  }

  private emitStored(runId: string, message: StoredMessage): void {
    const metadata = this.metadata.get(runId);
    if (metadata === undefined) return;
    const kept = Object.entries(metadata).filter(([, value]) => isSimple(value));
    this.task.host.emitEvent("messages", "", { message, metadata: Object.fromEntries(kept) });
  }
}

function isSimple(value: unknown): boolean {
  return Array.isArray(value) || ["string", "number", "boolean"].includes(typeof value);
}

import type { Event, MessageDelta, TaskChange } from "../_gen/graphd/v1/event_pb.js";
import { createId } from "../calls/index.js";
import { fromPayload } from "../codec/index.js";
import { NAMESPACE_SEPARATOR } from "../constants.js";
import { publicLevels, publicName } from "../names/index.js";
import type { RunConfig } from "./config.js";
import type { GraphShape } from "./graph_shape.js";
import { isObject } from "./stream_modes.js";

type StoredMessage = Record<string, unknown> & { type: string; id?: string };
type Metadata = Record<string, unknown>;

/** A message or a piece of one, and where it comes from. */
export type MessageItem = [message: unknown, metadata: Metadata];

const TYPES = new Set(["human", "ai", "AIMessageChunk", "system", "tool", "function", "remove"]);

/** The messages of a run, each one once: pieces that nodes emit, and messages that they return. */
export class MessageStream {
  private readonly seen = new Set<string>();
  private readonly triggers = new Map<string, readonly string[]>();
  private readonly restarts = new Map<string, number>();
  private readonly metadata: Metadata;

  constructor(
    private readonly root: GraphShape,
    config: RunConfig,
  ) {
    const thread = config.configurable?.thread_id;
    this.metadata = { ...(thread === undefined ? {} : { thread_id: thread }), ...config.metadata };
  }

  /** Messages of the state, as it is stored, were there before: they are no news. */
  markSeen(state: unknown): void {
    for (const { id } of findMessages(state)) if (id !== undefined) this.seen.add(id);
  }

  recordTriggers(event: Event, change: TaskChange): void {
    this.triggers.set(event.taskId, change.triggers);
  }

  /** A task begins anew: its pieces come again, and say so. */
  recordRestart(event: Event): void {
    this.restarts.set(event.taskId, (this.restarts.get(event.taskId) ?? 0) + 1);
  }

  /** A token or message that a node emits on the way. */
  emitted(event: Event, delta: MessageDelta): MessageItem {
    let value = fromPayload(delta.value);
    let extra: Metadata = {};
    if (isObject(value) && Object.keys(value).sort().join() === "message,metadata") {
      extra = isObject(value.metadata) ? value.metadata : {};
      value = value.message;
    }
    if (!isStoredMessage(value)) return [value, { ...this.describe(event), ...extra }];
    this.seen.add(this.ensureId(value));
    return [this.read(event, value), { ...this.describe(event), ...extra }];
  }

  /** The messages in the result of a node, as it is stored. */
  *returned(event: Event, update: unknown): Generator<MessageItem> {
    for (const message of findMessages(update)) {
      if (message.type === "remove") continue;
      const id = this.ensureId(message);
      if (this.seen.has(id)) continue;
      this.seen.add(id);
      yield [this.read(event, message), this.describe(event)];
    }
  }

  /** A message without an id gets one: it is no other message's repetition. */
  private ensureId(message: StoredMessage): string {
    message.id ??= createId();
    return message.id;
  }

  private read(event: Event, message: StoredMessage): unknown {
    return (this.root.findGraph(publicLevels(event.namespace)) ?? this.root).readMessage(message);
  }

  private describe(event: Event): Metadata {
    const node = publicName(event.node);
    const levels = publicLevels(event.namespace);
    const namespace = [...levels, `${node}:${event.taskId}`].join(NAMESPACE_SEPARATOR);
    const restarts = this.restarts.get(event.taskId);
    return {
      ...this.metadata,
      ...this.root.findGraph(levels)?.nodeMetadata(node),
      langgraph_step: event.step,
      langgraph_node: node,
      langgraph_triggers: this.triggers.get(event.taskId) ?? [],
      langgraph_path: ["__pregel_pull", node],
      langgraph_checkpoint_ns: namespace,
      checkpoint_ns: namespace,
      ...(restarts === undefined ? {} : { graphd_restarts: restarts }),
    };
  }
}

function isStoredMessage(value: unknown): value is StoredMessage {
  return isObject(value) && typeof value.type === "string" && TYPES.has(value.type) && "content" in value;
}

/** Messages in the keys of a state or of an update. */
function* findMessages(value: unknown): Generator<StoredMessage> {
  if (isStoredMessage(value)) yield value;
  else if (Array.isArray(value)) for (const item of value) yield* findMessages(item);
  else if (isObject(value)) {
    for (const part of Object.values(value)) {
      for (const item of Array.isArray(part) ? part : [part]) if (isStoredMessage(item)) yield item;
    }
  }
}

/** Ids of the messages that a node returns: those that are shown are those that are stored. */
import { randomUUID } from "node:crypto";
import { coerceMessages } from "../messages/coerced_message.js";
import { isMessage, toStoredMessage } from "../messages/stored_message.js";
import type { DeclaredKey } from "../state/index.js";
import { isOverwrite } from "../values/index.js";

/** Gives the messages of one result their ids. `shown` are messages of all keys, because a client watches them. */
export class MessageIds {
  /** By object: one that is returned twice is one message. */
  private readonly given = new Map<unknown, string>();

  constructor(private readonly shown: boolean) {}

  /** What is written to a key, with ids. The objects of the node stay as they are. */
  addIds(key: DeclaredKey | undefined, value: unknown): unknown {
    if (key?.hasMessages && !isOverwrite(value)) return this.nameAll(value);
    if (!this.shown) return value;
    return Array.isArray(value) ? value.map((item) => this.nameShown(item)) : this.nameShown(value);
  }

  private nameAll(value: unknown): unknown[] {
    const given = Array.isArray(value) ? value : [value];
    return coerceMessages(value).map((message, at) =>
      message.id ? message : { ...message, id: this.idOf(given[at] ?? value) },
    );
  }

  private nameShown(value: unknown): unknown {
    if (!isMessage(value) || (value as { id?: unknown }).id) return value;
    return { ...toStoredMessage(value), id: this.idOf(value) };
  }

  private idOf(message: unknown): string {
    const known = this.given.get(message);
    if (known !== undefined) return known;
    const id = randomUUID();
    if (typeof message === "object" && message !== null) this.given.set(message, id);
    return id;
  }
}

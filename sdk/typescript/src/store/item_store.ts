/** A store in a server: what nodes and clients share beside the states of threads. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { ItemService, type Item as WireItem } from "../_gen/graphd/v1/item_service_pb.js";
import { type Caller, callRepeatedly, Deadline } from "../calls/index.js";
import { fromPayload, toPayload } from "../codec/index.js";
import { isGraphdError } from "../errors/index.js";
import type { BaseStore, Item, ListNamespacesOptions, SearchItem, SearchOptions } from "../values/index.js";
import { checkOperators } from "./filter.js";
import { checkLabels, checkNamespace } from "./namespace.js";

export type PutOptions = {
  /** Minutes that the item lives after it was put, or read with `refreshTtl`; it stays when they are left out. */
  ttl?: number | undefined;
};

/** The largest number that a field of a request takes. */
const MOST = 2 ** 31 - 1;
const MINUTE = 60_000;

export class ItemStore implements BaseStore {
  /** `findCaller` finds the server when it is first needed; `timeout` is in milliseconds. */
  constructor(
    private readonly findCaller: () => Promise<Caller>,
    private readonly timeout: number | undefined = MINUTE,
  ) {
    Deadline.after(timeout); // refuses what is none
  }

  /** The item of a key, `null` when there is none. */
  async get(
    namespace: string[],
    key: string,
    options: { refreshTtl?: boolean | undefined } = {},
  ): Promise<Item | null> {
    checkLabels(namespace);
    const request = { namespace, key, refreshTtl: options.refreshTtl ?? true };
    try {
      return readItem(await this.call(ItemService.method.getItem, request));
    } catch (error) {
      if (isGraphdError(error, "ITEM_NOT_FOUND")) return null;
      throw error;
    }
  }

  /** Puts an item. `index` is LangGraph's, and has no effect: the server has no index by meaning. */
  async put(
    namespace: string[],
    key: string,
    value: Record<string, any>,
    _index?: false | string[],
    options: PutOptions = {},
  ): Promise<void> {
    checkNamespace(namespace);
    const ttl = options.ttl === undefined ? {} : { ttl: durationFromMs(readMinutes(options.ttl)) };
    await this.call(ItemService.method.putItem, { namespace, key, value: toPayload(value), ...ttl });
  }

  /** Deletes an item, if there is one. */
  async delete(namespace: string[], key: string): Promise<void> {
    checkLabels(namespace);
    await this.call(ItemService.method.deleteItem, { namespace, key });
  }

  /** Items in a namespace and below it, the newest first, whose values pass the filter. */
  async search(namespacePrefix: string[], options: SearchOptions = {}): Promise<SearchItem[]> {
    checkLabels(namespacePrefix);
    const { filter, limit = 10, offset = 0, query = "", refreshTtl = true } = options;
    checkOperators(filter);
    const page = await this.call(ItemService.method.searchItems, {
      namespacePrefix,
      ...(filter && { filter: toPayload(filter) }),
      limit: readCount("limit", limit) || 1,
      offset: readCount("offset", offset),
      query,
      refreshTtl,
    });
    return page.items.slice(0, limit).map(readItem);
  }

  /** The namespaces that have items, in the order of their labels. `*` stands for any label. */
  async listNamespaces(options: ListNamespacesOptions = {}): Promise<string[][]> {
    const { prefix = [], suffix = [], maxDepth = 0, limit = 100, offset = 0 } = options;
    checkLabels(prefix);
    checkLabels(suffix);
    const page = await this.call(ItemService.method.listItemNamespaces, {
      prefix,
      suffix,
      maxDepth: readCount("maxDepth", maxDepth),
      limit: readCount("limit", limit) || 1,
      offset: readCount("offset", offset),
    });
    return page.namespaces.slice(0, limit).map(({ labels }) => labels);
  }

  /** Calls may be repeated: those that write say how the item is to be. */
  private async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    const deadline = Deadline.after(this.timeout);
    return await callRepeatedly(await this.findCaller(), method, request, { deadline });
  }
}

function readCount(name: string, count: number): number {
  if (Number.isInteger(count) && count >= 0) return Math.min(count, MOST);
  throw new TypeError(`${name} is ${count}: want a whole number, 0 or more`);
}

function readMinutes(ttl: number): number {
  if (ttl > 0 && ttl * MINUTE <= Number.MAX_SAFE_INTEGER) return ttl * MINUTE;
  throw new TypeError(`ttl is ${ttl}: want a number of minutes above 0, or nothing for an item that stays`);
}

function readTime(time: Timestamp | undefined): Date {
  return time === undefined ? new Date(0) : timestampDate(time);
}

function readItem(item: WireItem): Item {
  return {
    value: fromPayload(item.value) as Record<string, any>,
    key: item.key,
    namespace: item.namespace,
    createdAt: readTime(item.createTime),
    updatedAt: readTime(item.updateTime),
  };
}

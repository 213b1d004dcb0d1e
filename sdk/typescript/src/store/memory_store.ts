/** A store in the memory of the process: what nodes keep beside the states of threads. */
import { encode } from "../codec/index.js";
import type { BaseStore, Item, SearchItem, SearchOptions } from "../values/index.js";

export class InMemoryStore implements BaseStore {
  private readonly items = new Map<string, Item>();

  async get(namespace: string[], key: string): Promise<Item | null> {
    const found = this.items.get(idOf(namespace, key));
    return found ? copyItem(found) : null;
  }

  async put(namespace: string[], key: string, value: Record<string, any>): Promise<void> {
    checkNamespace(namespace);
    const now = new Date();
    const createdAt = this.items.get(idOf(namespace, key))?.createdAt ?? now;
    const kept = copyValue(value);
    this.items.set(idOf(namespace, key), {
      namespace: [...namespace],
      key,
      value: kept,
      createdAt,
      updatedAt: now,
    });
  }

  async delete(namespace: string[], key: string): Promise<void> {
    this.items.delete(idOf(namespace, key));
  }

  /** Items below a namespace whose values have the fields of `filter`, in the order in which they were put. */
  async search(namespacePrefix: string[], options: SearchOptions = {}): Promise<SearchItem[]> {
    const { filter = {}, limit = 10, offset = 0 } = options;
    const found = [...this.items.values()].filter(
      ({ namespace, value }) => startsWith(namespace, namespacePrefix) && hasFields(value, filter),
    );
    return found.slice(offset, offset + limit).map(copyItem);
  }

  /** The namespaces of items, each once. */
  async listNamespaces(
    options: {
      prefix?: string[];
      suffix?: string[];
      maxDepth?: number;
      limit?: number;
      offset?: number;
    } = {},
  ): Promise<string[][]> {
    const { prefix = [], suffix = [], maxDepth, limit = 100, offset = 0 } = options;
    const found = new Map<string, string[]>();
    for (const { namespace } of this.items.values()) {
      if (!startsWith(namespace, prefix) || !startsWith([...namespace].reverse(), [...suffix].reverse()))
        continue;
      const shown = namespace.slice(0, maxDepth);
      found.set(JSON.stringify(shown), shown);
    }
    return [...found.values()].slice(offset, offset + limit);
  }
}

function idOf(namespace: readonly string[], key: string): string {
  return JSON.stringify([namespace, key]);
}

function checkNamespace(namespace: unknown): void {
  const isList =
    Array.isArray(namespace) &&
    namespace.length > 0 &&
    namespace.every((one) => typeof one === "string" && one);
  if (!isList) throw new TypeError('a namespace is a list of texts, like ["users", "alice"]');
}

function startsWith(namespace: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((part, at) => part === "*" || part === namespace[at]);
}

function hasFields(value: Record<string, any>, filter: Record<string, any>): boolean {
  return Object.entries(filter).every(([field, wanted]) => compare(value[field], wanted));
}

const OPERATORS: Record<string, (value: any, operand: any) => boolean> = {
  $eq: (value, operand) => encodeAny(value) === encodeAny(operand),
  $ne: (value, operand) => encodeAny(value) !== encodeAny(operand),
  $gt: (value, operand) => value > operand,
  $gte: (value, operand) => value >= operand,
  $lt: (value, operand) => value < operand,
  $lte: (value, operand) => value <= operand,
};

function compare(value: unknown, wanted: unknown): boolean {
  const operators = typeof wanted === "object" && wanted !== null ? Object.entries(wanted) : [];
  if (operators.length > 0 && operators.every(([name]) => name.startsWith("$"))) {
    return operators.every(([name, operand]) => {
      const test = OPERATORS[name];
      if (test === undefined)
        throw new TypeError(`unknown operator ${name}: want one of ${Object.keys(OPERATORS).join(", ")}`);
      return test(value, operand);
    });
  }
  return encodeAny(value) === encodeAny(wanted);
}

function encodeAny(value: unknown): string | undefined {
  return value === undefined ? undefined : encode(value);
}

/** What a node changes in a value later is not in the store. */
function copyValue(value: Record<string, any>): Record<string, any> {
  encode(value);
  return structuredClone(value);
}

function copyItem(item: Item): Item {
  return { ...item, value: structuredClone(item.value), namespace: [...item.namespace] };
}

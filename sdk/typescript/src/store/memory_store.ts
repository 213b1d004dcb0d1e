/** A store in the memory of the process: what nodes keep beside the states of threads. */
import { encode } from "../codec/index.js";
import type { BaseStore, Item, ListNamespacesOptions, SearchItem, SearchOptions } from "../values/index.js";
import { checkOperators, passesFilter } from "./filter.js";
import { checkNamespace, compareNamespaces } from "./namespace.js";

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
    checkOperators(filter);
    const found = [...this.items.values()].filter(
      ({ namespace, value }) => startsWith(namespace, namespacePrefix) && passesFilter(value, filter),
    );
    return found.slice(offset, offset + limit).map(copyItem);
  }

  /** The namespaces of items, each once, in the order of their labels. */
  async listNamespaces(options: ListNamespacesOptions = {}): Promise<string[][]> {
    const { prefix = [], suffix = [], maxDepth, limit = 100, offset = 0 } = options;
    const found = new Map<string, string[]>();
    for (const { namespace } of this.items.values()) {
      if (!startsWith(namespace, prefix) || !startsWith([...namespace].reverse(), [...suffix].reverse()))
        continue;
      const shown = namespace.slice(0, maxDepth);
      found.set(JSON.stringify(shown), shown);
    }
    return [...found.values()].sort(compareNamespaces).slice(offset, offset + limit);
  }
}

function idOf(namespace: readonly string[], key: string): string {
  return JSON.stringify([namespace, key]);
}

function startsWith(namespace: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((part, at) => part === "*" || part === namespace[at]);
}

/** What a node changes in a value later is not in the store. */
function copyValue(value: Record<string, any>): Record<string, any> {
  encode(value);
  return structuredClone(value);
}

function copyItem(item: Item): Item {
  return { ...item, value: structuredClone(item.value), namespace: [...item.namespace] };
}

/** Items that nodes keep beside the states of threads. */

export type Item = {
  value: Record<string, any>;
  key: string;
  namespace: string[];
  createdAt: Date;
  updatedAt: Date;
};

export type SearchItem = Item & { score?: number };

export type SearchOptions = {
  filter?: Record<string, any>;
  limit?: number;
  offset?: number;
  query?: string;
  /** Items with a ttl live for it from now on; so they do when it is left out. */
  refreshTtl?: boolean;
};

export type ListNamespacesOptions = {
  /** The first labels; `*` stands for any label. */
  prefix?: string[];
  /** The last labels; `*` stands for any label. */
  suffix?: string[];
  /** Namespaces with more labels count as one with their first ones. */
  maxDepth?: number;
  limit?: number;
  offset?: number;
};

/** What a store can do. Any object with these methods is one. */
export interface BaseStore {
  get(namespace: string[], key: string): Promise<Item | null>;
  put(namespace: string[], key: string, value: Record<string, any>, ...rest: any[]): Promise<void>;
  delete(namespace: string[], key: string): Promise<void>;
  search(namespacePrefix: string[], options?: SearchOptions): Promise<SearchItem[]>;
}

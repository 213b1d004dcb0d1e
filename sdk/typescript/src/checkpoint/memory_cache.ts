/** Keeps results of nodes in this process, for nodes with a `cachePolicy`. */
export class InMemoryCache {
  private readonly kept = new Map<string, { result: Uint8Array; end: number }>();

  read(key: string): Uint8Array | undefined {
    const found = this.kept.get(key);
    if (found === undefined) return undefined;
    if (Date.now() < found.end) return found.result;
    this.kept.delete(key);
    return undefined;
  }

  /** Keeps a result for so many milliseconds, for ever when they are left out. */
  write(key: string, result: Uint8Array, ttl = Number.POSITIVE_INFINITY): void {
    this.kept.set(key, { result, end: Date.now() + ttl });
  }

  /** Forgets the results whose keys begin so: all of them without a prefix. */
  clear(prefix = ""): void {
    for (const key of this.kept.keys()) if (key.startsWith(prefix)) this.kept.delete(key);
  }
}

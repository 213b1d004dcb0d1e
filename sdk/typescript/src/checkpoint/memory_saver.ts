/**
 * Keeps threads in a local server that ends with this process. All savers share one server; the threads of one
 * saver are its own. With `server`, or GRAPHD_SERVER, they are kept in a server that stays.
 */
export class MemorySaver {
  readonly lg_name = "GraphdSaver";
  /** Begins the ids of all its threads. */
  readonly prefix: string;
  /** Where the server is; empty for a local one. */
  readonly server: string;

  constructor(options: { server?: string } = {}) {
    this.server = options.server ?? process.env.GRAPHD_SERVER ?? "";
    this.prefix = this.server === "" ? `m${crypto.randomUUID().replaceAll("-", "").slice(0, 10)}.` : "";
  }

  /** Deletes a thread with everything that belongs to it. */
  async deleteThread(threadId: string): Promise<void> {
    await this.deletion?.(this.server, this.prefix, threadId);
  }

  /** How threads are deleted; `compiled` says it, which knows the servers. */
  deletion: ((server: string, prefix: string, threadId: string) => Promise<void>) | undefined;
}

export function isMemorySaver(value: unknown): value is MemorySaver {
  return (value as { lg_name?: unknown } | null | undefined)?.lg_name === "GraphdSaver";
}

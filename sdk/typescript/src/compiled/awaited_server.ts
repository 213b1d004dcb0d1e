/** Servers that workers of this process wait for. However many wait for one server, it is told of once. */
import { setTimeout as after } from "node:timers";
import { emitWarning } from "../calls/index.js";

/** Milliseconds in which most servers have started. */
const PATIENCE = 3_000;
/** Milliseconds in which the other workers connect: the pauses between their attempts have grown meanwhile. */
const PATIENCE_OF_OTHERS = 10_000;

/** Says, after so many milliseconds, why there is no server. */
type DescribeSilence = (patience: number) => string;

const awaited = new Map<string, AwaitedServer>();

/** Waits until the server at an address has taken a worker. */
export async function awaitServer(
  address: string,
  taken: Promise<void>,
  describe: DescribeSilence,
): Promise<void> {
  const server = awaited.get(address) ?? new AwaitedServer(address);
  awaited.set(address, server);
  server.join(describe);
  try {
    await taken;
    server.tellConnected();
  } finally {
    if (server.leave(describe)) awaited.delete(address);
  }
}

class AwaitedServer {
  private readonly waiting = new Set<DescribeSilence>();
  private timer: NodeJS.Timeout | undefined;
  private isTold = false;

  constructor(private readonly address: string) {}

  join(describe: DescribeSilence): void {
    this.waiting.add(describe);
    if (!this.isTold) this.timer ??= this.schedule(PATIENCE);
  }

  /** Whether nothing waits any more. */
  leave(describe: DescribeSilence): boolean {
    this.waiting.delete(describe);
    if (this.waiting.size > 0) return false;
    clearTimeout(this.timer);
    return true;
  }

  private schedule(patience: number): NodeJS.Timeout {
    return after(() => {
      this.timer = undefined;
      this.isTold = true;
      const [describe] = this.waiting;
      if (describe !== undefined)
        emitWarning(`${describe(patience)} The worker goes on trying`, "UNAVAILABLE");
    }, patience);
  }

  /** A worker is connected. */
  tellConnected(): void {
    clearTimeout(this.timer);
    this.timer = this.schedule(PATIENCE_OF_OTHERS);
    if (this.isTold) emitWarning(`graphd answers at ${this.address}: the worker is connected`, "CONNECTED");
    this.isTold = false;
  }
}

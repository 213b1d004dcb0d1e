import type { Readable } from "node:stream";

/** Characters of the log that are kept. */
const KEPT = 64 << 10;

export type Serving = { address: string; http: string };

/** What a server writes: lines of JSON, of which one says where it serves. */
export class ServerLog {
  /** Where the server serves. It fails when the server ends before. */
  readonly serving: Promise<Serving>;
  private found: (serving: Serving) => void = () => {};
  private lost: (error: Error) => void = () => {};
  private written = "";
  private line = "";

  constructor(process: { stdout: Readable; stderr: Readable }) {
    this.serving = new Promise((resolve, reject) => {
      this.found = resolve;
      this.lost = reject;
    });
    for (const stream of [process.stdout, process.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => this.add(text));
    }
  }

  /** The server has ended, or has not begun. */
  fail(error: Error | undefined): void {
    this.lost(error ?? new Error("the process has ended"));
  }

  text(): string {
    return this.written;
  }

  private add(text: string): void {
    this.written = (this.written + text).slice(-KEPT);
    const lines = (this.line + text).split("\n");
    this.line = lines.pop() ?? "";
    for (const line of lines) {
      const serving = readServing(line);
      if (serving !== undefined) this.found(serving);
    }
  }
}

function readServing(line: string): Serving | undefined {
  if (!line.includes('"msg":"serving"')) return undefined;
  const { address, http } = JSON.parse(line) as { address: string; http?: string };
  return { address, http: http ?? "" };
}

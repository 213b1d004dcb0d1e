import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { ServerUnavailableError } from "../errors/index.js";
import { findProgram } from "./find_program.js";
import { ServerLog } from "./server_log.js";

export type DevOptions = {
  /** Where threads are kept: `memory`, or `sqlite:FILE`. */
  store?: string;
  /** Further options of `graphd serve`. */
  flags?: readonly string[];
  /** 0 lets the server choose. */
  port?: number;
};

type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** A graphd process that ends with this one, however that ends, or with `close()`. */
export class DevServer {
  private constructor(
    private readonly process: ServerProcess,
    private readonly output: ServerLog,
    /** Where it is called, like `127.0.0.1:41234`. */
    readonly address: string,
    /** Where browsers call it, when `--http` is among the flags; empty otherwise. */
    readonly httpUrl: string,
  ) {}

  /** Starts a server, and waits until it serves. */
  static async start(options: DevOptions = {}): Promise<DevServer> {
    const { store = "memory", flags = [], port = 0 } = options;
    const command = [
      "serve",
      "--until-input-ends",
      "--listen",
      `127.0.0.1:${port}`,
      "--store",
      store,
      ...flags,
    ];
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GRAPHD_"));
    // The pipe of its input ends with this process, and the server with it.
    const child = spawn(findProgram(), command, {
      stdio: ["pipe", "pipe", "pipe"],
      env: Object.fromEntries(own),
    });
    const output = new ServerLog(child);
    child.once("error", (error) => output.fail(error));
    child.once("exit", () => output.fail(undefined));
    const { address, http } = await output.serving.catch((error: unknown) => {
      const problem = `graphd did not begin to serve:\n${output.text()}`;
      throw new ServerUnavailableError(problem, { code: "UNAVAILABLE", cause: error });
    });
    unref(child);
    return new DevServer(child, output, address, http);
  }

  /** Whether the process is there. */
  get isRunning(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** The last of what the server has written. */
  log(): string {
    return this.output.text();
  }

  /** Ends the server in order, and waits for it. */
  async close(): Promise<void> {
    this.process.stdin.end();
    await this.end("SIGTERM");
  }

  /** Ends the server as a crash would. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.process, "exit");
    this.process.ref(); // who waits for the end is not to end before
    this.process.kill(signal);
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Lets this process end while the server runs. */
function unref(child: ServerProcess): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as Socket).unref();
}

/**
 * Starts a server: the program that $GRAPHD_BIN names, or `graphd` on the PATH. It ends with this process, or
 * with `close()`.
 */
export async function dev(options: DevOptions = {}): Promise<DevServer> {
  return await DevServer.start(options);
}

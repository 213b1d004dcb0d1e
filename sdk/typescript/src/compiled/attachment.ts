/** The work of this process for a graph in a server. */
import { setTimeout as after } from "node:timers";
import { buildManifest, type Program } from "../declare/index.js";
import { ServerUnavailableError } from "../errors/index.js";
import { connect, type Security } from "../transport/index.js";
import { Session } from "../worker/index.js";
import { awaitServer } from "./awaited_server.js";

const ATTACH_TIMEOUT = 30_000;
/** Milliseconds after the last call in which a session without an own purpose stays. */
const LINGER = 100;

export class Attachment {
  private readonly session: Session;
  private calls = 0;
  private timer: NodeJS.Timeout | undefined;
  private hasLeft = false;

  constructor(
    readonly program: Program,
    readonly address: string,
    security: Security | undefined,
    /** The process works on without calls of its own. */
    public isLasting: boolean,
  ) {
    const programs = new Map([...program.descendants(), program].map((one) => [one.name, one]));
    this.session = new Session(
      connect(address, security),
      buildManifest(program),
      programs,
      program.options.store,
    );
    this.session.ended.catch(() => {
      this.hasLeft = true;
    });
  }

  /** Whether it serves no more. */
  get isOver(): boolean {
    return this.hasLeft;
  }

  /**
   * Resolves when the server has taken the graph, however long that takes. A worker may start before its server: it is
   * told of after a while.
   */
  async untilTaken(): Promise<void> {
    const describe = (patience: number) => this.describeSilence(patience).message;
    try {
      await awaitServer(this.address, this.session.ready, describe);
    } catch (error) {
      if (!this.session.closed.aborted) throw error; // closed before it was taken: there is nothing to tell
    }
  }

  /** Resolves when the server has taken the graph, with its version. Where none is, the worker soon leaves. */
  async untilReady(timeout = ATTACH_TIMEOUT): Promise<string> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = after(() => reject(this.describeSilence(timeout)), timeout);
    });
    try {
      await Promise.race([this.session.ready, late]);
    } catch (error) {
      this.isLasting = false;
      this.leaveSoon();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    return this.session.versions.get(this.program.name) ?? "";
  }

  private describeSilence(timeout: number): ServerUnavailableError {
    const last = this.session.lastProblem;
    return new ServerUnavailableError(
      `no graphd answered at ${this.address} within ${timeout / 1000} s; is \`graphd serve\` running there?` +
        (last ? ` The last error: ${last.message}` : ""),
      { code: "UNAVAILABLE", cause: last },
    );
  }

  /** A call begins; the returned function says that it has ended. */
  hold(): () => void {
    this.calls++;
    clearTimeout(this.timer);
    return () => {
      this.calls--;
      this.leaveSoon();
    };
  }

  /** An open session would keep the process from ending. */
  private leaveSoon(): void {
    if (this.calls > 0 || this.isLasting) return;
    clearTimeout(this.timer);
    this.timer = after(() => {
      if (this.calls > 0 || this.isLasting) return;
      if (this.session.isBusy) this.leaveSoon();
      else void this.close();
    }, LINGER);
  }

  /** Resolves when the session ends. */
  async untilClosed(): Promise<void> {
    await this.session.ended;
  }

  /** Takes no more work; lets running nodes finish for so many milliseconds. */
  async close(grace = 0): Promise<void> {
    this.hasLeft = true;
    clearTimeout(this.timer);
    await this.session.close(grace);
  }
}

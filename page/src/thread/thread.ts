// What the page knows of one thread: itself, its graph, its checkpoints, and its events, kept up to date.

import { CallError } from "../api/connect";
import type { Event, Graph, ListCheckpointsResponse, StateSnapshot, Thread } from "../api/messages";
import { pause, runWhileSeen } from "../api/seen";
import { client, noteError } from "../api/session";
import { Store } from "../api/store";
import { connection } from "../api/connection";
import { History, idOf } from "./history";

export interface Known {
  thread: Thread | undefined;
  graph: Graph | undefined;
  history: History;
  events: readonly Event[];
  /** How many of the oldest events are not kept in the page. */
  dropped: number;
  problem: string;
}

const channels = ["CHANNEL_UPDATES", "CHANNEL_TASKS", "CHANNEL_CHECKPOINTS", "CHANNEL_CUSTOM"];
const pageSize = 100;
const maxCheckpoints = 2000;
const maxEvents = 20_000;
const settleFor = 120; // changes that come together are read once
const retryAfter = [200, 500, 1000, 2000, 5000];

/** Follows a thread. */
export class ThreadFollower {
  readonly known = new Store<Known>({ thread: undefined, graph: undefined, history: new History([]), events: [], dropped: 0, problem: "" });

  private readonly closing = new AbortController();
  private pending: Event[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading: Promise<void> | undefined;
  private isOutdated = false;

  constructor(private readonly threadId: string) {}

  start(): void {
    void this.load().then(() => this.follow());
  }

  stop(): void {
    this.closing.abort();
    clearTimeout(this.timer);
  }

  /** Reads the thread anew, for what an own call has changed. */
  async refresh(): Promise<void> {
    await this.load();
  }

  /** Reads the thread, and once more when it may have changed meanwhile. */
  private load(): Promise<void> {
    this.isOutdated = true;
    this.loading ??= this.readUntilCurrent().finally(() => {
      this.loading = undefined;
    });
    return this.loading;
  }

  private async readUntilCurrent(): Promise<void> {
    while (this.isOutdated && !this.closing.signal.aborted) {
      this.isOutdated = false;
      await this.read();
    }
  }

  private async read(): Promise<void> {
    try {
      const { signal } = this.closing;
      const thread = await client.call<Thread>("ThreadService/GetThread", { threadId: this.threadId, view: "THREAD_VIEW_FULL" }, signal);
      const graph = await this.fetchGraph(thread, signal);
      const history = new History(await this.fetchCheckpoints(signal));
      this.show({ thread, graph, history, problem: "" });
    } catch (err) {
      if (this.closing.signal.aborted) return;
      noteError(err);
      this.show({ problem: err instanceof Error ? err.message : String(err) });
    }
  }

  private async fetchGraph(thread: Thread, signal: AbortSignal): Promise<Graph | undefined> {
    const { graph: shown } = this.known.get();
    if (!thread.graph) return undefined;
    if (shown?.graph === thread.graph && shown.version === thread.graphVersion) return shown;
    return client
      .call<Graph>("RegistryService/GetGraph", { graph: thread.graph, version: thread.graphVersion, view: "GRAPH_VIEW_FULL" }, signal)
      .catch(() => undefined); // the thread is shown without a drawing
  }

  /** Reads the newest checkpoints, as far as they are not known. What was the newest one before has changed. */
  private async fetchCheckpoints(signal: AbortSignal): Promise<StateSnapshot[]> {
    const { history } = this.known.get();
    const found: StateSnapshot[] = [];
    for (let pageToken = ""; found.length < maxCheckpoints; ) {
      const page = await client.call<ListCheckpointsResponse>("ThreadService/ListCheckpoints", { threadId: this.threadId, pageSize, pageToken }, signal);
      for (const s of page.checkpoints ?? []) {
        const at = history.newestFirst.findIndex((k) => idOf(k) === idOf(s));
        if (at > 0) return [...found, ...history.newestFirst.slice(at)].slice(0, maxCheckpoints);
        found.push(s);
      }
      pageToken = page.nextPageToken ?? "";
      if (pageToken === "") break;
    }
    return found;
  }

  private async follow(): Promise<void> {
    let after: Event["cursor"];
    let failures = 0;
    await runWhileSeen(this.closing.signal, async (signal) => {
      try {
        const from = after ? { after } : { beginning: {} };
        for await (const event of client.follow<Event>("GraphService/Watch", { threadId: this.threadId, follow: true, filter: { channels }, ...from }, signal)) {
          failures = 0;
          connection.set("live");
          after = event.cursor ?? event.heartbeat?.scanned ?? after;
          if (!event.opened && !event.heartbeat && !event.end) this.take(event);
          if (event.end?.cause === "CAUSE_THREAD_DELETED") return this.end("The thread was deleted.");
        }
      } catch (err) {
        if (signal.aborted) return;
        noteError(err);
        if (err instanceof CallError && /^(CURSOR_|INVALID_CURSOR)/.test(err.reason)) {
          after = undefined;
          this.show({ events: [], dropped: 0 });
        } else if (err instanceof CallError && err.code === "not_found") {
          return this.end(err.message);
        }
      }
      const shown = connection.get();
      connection.set(typeof shown === "object" ? shown : { since: Date.now() });
      await pause(retryAfter[Math.min(failures++, retryAfter.length - 1)]!, signal);
    });
  }

  private end(problem: string): void {
    this.show({ problem });
    this.closing.abort();
  }

  private take(event: Event): void {
    this.pending.push(event);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const { events, dropped } = this.known.get();
      const all = [...events, ...this.pending];
      const more = Math.max(0, all.length - maxEvents);
      const hasProgress = this.pending.some((e) => e.checkpoint ?? e.runState ?? e.interrupt ?? e.interruptResolved ?? e.task);
      this.pending = [];
      this.show({ events: all.slice(more), dropped: dropped + more });
      // The first events, too, may be of later than what was read before them.
      if (hasProgress) void this.load();
    }, settleFor);
  }

  private show(change: Partial<Known>): void {
    this.known.set({ ...this.known.get(), ...change });
  }
}

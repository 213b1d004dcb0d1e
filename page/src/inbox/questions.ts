// The open questions that the inbox shows: loaded page by page, and kept up to date by a stream.

import { CallError } from "../api/connect";
import { connection as shownConnection, type Connection } from "../api/connection";
import type { CountInterruptsResponse, Interrupt, InterruptChange, ListInterruptsResponse } from "../api/messages";
import { client, describeCaller, noteError } from "../api/session";
import { followTogether } from "../api/shared_stream";
import { Store } from "../api/store";
import { openCounts } from "./counts";
import { type Caller, compareQuestions, isFor } from "./order";

export type Section = "mine" | "others";

export interface Inbox {
  sections: Readonly<Record<Section, readonly Interrupt[]>>;
  hasMore: Readonly<Record<Section, boolean>>;
  /** How many are open, as the server counts them; undefined while it is not known. */
  counts: Readonly<Partial<Record<Section | "all", number>>>;
  connection: Connection;
  /** What was resolved a moment ago, by id. */
  leaving: ReadonlyMap<string, Interrupt>;
  /** Why the questions can't be listed, "" when they can. */
  problem: string;
}

interface Source {
  section: Section;
  filter: string;
  orderBy: string;
  pageToken: string;
  isDone: boolean;
}

const pageSize = 100;
const maxLoaded = 20_000;
const maxChanges = 256;
const leavingFor = 2000;
const countEvery = 2000;
const showEvery = 30;

/** Follows the open questions that a filter selects. */
export class Questions {
  readonly inbox = new Store<Inbox>({
    sections: { mine: [], others: [] }, hasMore: { mine: false, others: false }, counts: {}, connection: "connecting", leaving: new Map(), problem: "",
  });
  /** Is told of every question that changed. */
  onChange: (question: Interrupt) => void = () => undefined;

  private readonly open = new Map<string, Interrupt>();
  private readonly leaving = new Map<string, Interrupt>();
  private readonly closing = new AbortController();
  private sources: Source[] = [];
  private loading: Promise<void> = Promise.resolve();
  private readonly changed = new Set<string>(); // since the page that is being read was asked for
  private countTimer: ReturnType<typeof setTimeout> | undefined;
  private showTimer: ReturnType<typeof setTimeout> | undefined;
  private unshown: Partial<Inbox> = {};

  /** condition is that of a filter, "" for none. */
  constructor(private readonly condition: string, private readonly caller: Caller) {}

  start(): void {
    void this.follow();
  }

  stop(): void {
    this.closing.abort();
    clearTimeout(this.countTimer);
    clearTimeout(this.showTimer);
  }

  find(id: string): Interrupt | undefined {
    return this.open.get(id);
  }

  /** Takes over what an own call has returned, before the stream tells of it. */
  take(question: Interrupt): void {
    this.apply({ interrupt: question, gone: question.state !== "INTERRUPT_STATE_OPEN" });
    this.show();
  }

  private follow(): Promise<void> {
    const filter = this.watchFilter();
    return followTogether<InterruptChange>(`${describeCaller()} ${filter}`, this.closing.signal, {
      // Changes are asked for before the list is read, so that none falls between the two.
      open: (token, signal) => client.follow("InterruptService/WatchInterrupts", { filter, maxChanges, withAllowed: true, ...(token === "" ? { startNow: true } : { resumeToken: token }) }, signal),
      take: async (message, isNext) => {
        for (const change of message ? message.changes ?? [message] : []) this.apply(change);
        if (!isNext) await this.list();
      },
      show: (connection) => this.show({ connection }),
      fail: async (err) => {
        noteError(err);
        if (this.sources.length === 0) await this.list().catch(noteError); // what is there is shown, though it may change
        if (!(err instanceof CallError)) return false;
        if (err.reason === "INVALID_FIELD") {
          this.show({ problem: err.message });
          this.closing.abort();
        }
        return err.reason === "INVALID_CURSOR" || err.reason.startsWith("CURSOR_");
      },
    });
  }

  /** Returns the filter of the stream: it takes fewer conditions than a list. */
  private watchFilter(): string {
    return this.isListed() ? 'state = "OPEN"' : joinConditions('state = "OPEN"', this.condition);
  }

  /** Tells whether the condition selects what only a list finds: then new questions come with the next list. */
  private isListed(): boolean {
    return /\b(claimed_by|due)\b/.test(this.condition);
  }

  private async list(): Promise<void> {
    await this.inTurn(async () => {
      this.open.clear();
      const orders = /\bdue\b/.test(this.condition) ? ["due_time"] : ["due_time", "create_time"];
      const source = (section: Section, filter: string) => (orderBy: string): Source => ({ section, filter, orderBy, pageToken: "", isDone: false });
      this.sources = [
        ...(this.caller.name ? orders.map(source("mine", joinConditions('mine = "true"', this.condition))) : []),
        ...orders.map(source("others", this.condition)),
      ];
      await this.loadSection("mine");
      await this.loadSection("others");
    });
    await this.count();
  }

  /** Loads more of a section, as far as there is more. */
  loadMore(section: Section): Promise<void> {
    return this.inTurn(() => this.loadSection(section));
  }

  /** Loads all that the filter selects, as far as a page holds them. */
  loadAll(): Promise<void> {
    return this.inTurn(async () => {
      for (const s of this.sources) while (!s.isDone && this.open.size < maxLoaded) await this.loadPage(s);
      this.showNow();
    });
  }

  /** Loads after what is being loaded. */
  private inTurn(load: () => Promise<void>): Promise<void> {
    const loaded = this.loading.then(load).finally(() => this.show());
    this.loading = loaded.catch(() => undefined);
    return loaded;
  }

  private async loadSection(section: Section): Promise<void> {
    for (const s of this.sources.filter((s) => s.section === section)) {
      while (!s.isDone && this.open.size < maxLoaded) if ((await this.loadPage(s)) > 0) return;
    }
  }

  /** Returns how many questions of a page are new. */
  private async loadPage(s: Source): Promise<number> {
    const { filter, orderBy, pageToken } = s;
    this.changed.clear();
    const page = await client.call<ListInterruptsResponse>("InterruptService/ListInterrupts", { filter, orderBy, pageSize, pageToken, withAllowed: true }, this.closing.signal);
    s.pageToken = page.nextPageToken ?? "";
    s.isDone = s.pageToken === "";
    const before = this.open.size;
    for (const q of page.interrupts ?? []) if (!this.changed.has(q.interruptId!)) this.open.set(q.interruptId!, q);
    return this.open.size - before;
  }

  private apply(change: InterruptChange): void {
    const q = change.interrupt;
    if (!q?.interruptId) return;
    this.onChange(q);
    this.changed.add(q.interruptId);
    const known = this.open.get(q.interruptId);
    if (change.gone || q.state !== "INTERRUPT_STATE_OPEN") {
      if (known) this.fade(q, known);
    } else if (known || (!this.isListed() && this.open.size < maxLoaded)) {
      this.leaving.delete(q.interruptId); // it is open again
      this.open.set(q.interruptId, q);
    }
    this.countTimer ??= setTimeout(() => {
      this.countTimer = undefined;
      this.count().catch(noteError);
    }, countEvery);
  }

  /** Shows for a moment what became of a question, where it was. */
  private fade(q: Interrupt, known: Interrupt): void {
    const id = q.interruptId!;
    this.leaving.set(id, q);
    this.open.set(id, known);
    setTimeout(() => {
      if (!this.leaving.delete(id)) return;
      this.open.delete(id);
      this.show();
    }, leavingFor);
  }

  private async count(): Promise<void> {
    if (this.condition.includes(" AND ") || this.isListed()) return this.show({ counts: {} }); // no index counts these
    const filters = this.condition !== "" ? [this.condition] : this.caller.name ? ["", 'mine = "true"'] : [""];
    const { counts } = await client.call<CountInterruptsResponse>("InterruptService/CountInterrupts", { filters }, this.closing.signal);
    const [all, mine] = (counts ?? []).map((c) => Number(c.count ?? 0));
    if (this.condition === "" && all !== undefined) openCounts.set({ ...openCounts.get(), "": all });
    this.show({ counts: { ...(all !== undefined && { all }), ...(mine !== undefined && { mine }) } });
  }

  /** Shows what has changed soon: of many changes the list is ordered once. */
  private show(change: Partial<Inbox> = {}): void {
    if (change.connection) shownConnection.set(change.connection);
    this.unshown = { ...this.unshown, ...change };
    this.showTimer ??= setTimeout(() => {
      this.showTimer = undefined;
      this.showNow();
    }, showEvery);
  }

  private showNow(): void {
    const now = Date.now();
    const sections: Record<Section, Interrupt[]> = { mine: [], others: [] };
    for (const q of this.open.values()) sections[isFor(q, this.caller, now) ? "mine" : "others"].push(q);
    sections.mine.sort(compareQuestions);
    sections.others.sort(compareQuestions);
    const hasMore = (section: Section): boolean => this.open.size < maxLoaded && this.sources.some((s) => s.section === section && !s.isDone);
    const { unshown } = this;
    this.unshown = {};
    this.inbox.set({
      ...this.inbox.get(), sections, leaving: new Map(this.leaving), hasMore: { mine: hasMore("mine"), others: hasMore("others") }, ...unshown,
    });
  }
}

function joinConditions(...conditions: string[]): string {
  return conditions.filter((c) => c !== "").join(" AND ");
}

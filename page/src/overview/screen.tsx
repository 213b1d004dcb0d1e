// The overview: do people keep up? Open questions, the oldest one, what is late, and for whom.

import type { ComponentChildren } from "preact";
import type { CountInterruptsResponse, Interrupt, ListGraphsResponse, ListInterruptsResponse, ListThreadsResponse, ListWorkersResponse } from "../api/messages";
import { client, ownGroups, ownName } from "../api/session";
import { addressOf, type Route } from "../route";
import { titleOf } from "../question/title";
import { Text } from "../text/marks";
import { formatCount, formatSpan, readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { useLoaded } from "../ui/loaded";

const readEvery = 5000;
const mostFilters = 32; // of one call
const mostListed = 500; // of one page

interface Count {
  name: string;
  address: string;
  /** undefined when the server can't count it for this caller. */
  n: number | undefined;
}

interface Overview {
  open: number | undefined;
  mine: number | undefined;
  oldest: Interrupt | undefined;
  next: Interrupt | undefined;
  late: string;
  working: string;
  failed: string;
  slots: { used: number; total: number } | undefined;
  graphs: readonly Count[];
  groups: readonly Count[];
}

export function OverviewScreen(_: { route: Route }): ComponentChildren {
  const now = useNow(readEvery);
  const { value: o, problem } = useLoaded((signal) => readOverview(now, signal), [now]);
  const known = (n: number | undefined): string => (n === undefined ? "–" : formatCount(n));
  return (
    <section class="page" aria-label="Overview">
      <header class="page-head"><h1>Overview</h1><span class="count">now</span></header>
      {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
      {o && (
        <>
          <ul class="cards-of">
            <Card title="Open questions" value={known(o.open)} about={o.mine === undefined ? "of everybody" : `${known(o.mine)} for you`} href={addressOf("inbox")} />
            <Card title="Oldest" value={o.oldest ? formatSpan(now - readTime(o.oldest.createTime)) : "–"} about={o.oldest ? titleOf(o.oldest) : "nothing is open"} href={questionAddress(o.oldest)} />
            <Card title="Next step" value={o.next ? describeDue(o.next, now) : "–"} about={o.next ? titleOf(o.next) : "nothing happens by itself"} href={questionAddress(o.next)} tone={o.next && readTime(o.next.dueTime) < now ? "bad" : ""} />
            <Card title="Late" value={o.late} about="whose next step is overdue" href={addressOf("inbox", [], { q: "is:late" })} tone={o.late === "0" ? "" : "bad"} />
            <Card title="Threads that work" value={o.working} about="with a run that is not waiting" href={addressOf("threads", [], { state: "BUSY" })} />
            <Card title="Threads that failed" value={o.failed} about="whose last run has failed" href={addressOf("threads", [], { state: "FAILED" })} tone={o.failed === "0" ? "" : "bad"} />
            {o.slots && <Card title="Worker slots" value={`${o.slots.used} of ${o.slots.total}`} about="in use" href={addressOf("workers")} />}
          </ul>
          <div class="panels">
            <Bars title="By graph" counts={o.graphs} />
            {o.groups.length > 0 && <Bars title="By your groups" counts={o.groups} />}
          </div>
        </>
      )}
    </section>
  );
}

function Card({ title, value, about, href, tone = "" }: { title: string; value: string; about: string; href: string | undefined; tone?: string | undefined }): ComponentChildren {
  const content = <><span>{title}</span><b>{value}</b><em class={tone}><Text of={about} /></em></>;
  return <li>{href === undefined ? <div class="card">{content}</div> : <a class="card" href={href}>{content}</a>}</li>;
}

function Bars({ title, counts }: { title: string; counts: readonly Count[] }): ComponentChildren {
  const most = Math.max(1, ...counts.map((c) => c.n ?? 0));
  const ordered = counts.toSorted((a, b) => (b.n ?? 0) - (a.n ?? 0));
  return (
    <section class="panel-of" aria-label={`Open questions ${title.toLowerCase()}`}>
      <h2>{title}</h2>
      <table class="table">
        <thead><tr><th>{title.replace(/^By (your )?/, "").replace(/s$/, "")}</th><th>Open</th><th><span class="sr">Share</span></th></tr></thead>
        <tbody>
          {ordered.map((c) => (
            <tr key={c.name}>
              <td><a href={c.address}><Text of={c.name} /></a></td>
              <td>{c.n === undefined ? "–" : formatCount(c.n)}</td>
              <td><span class="share"><i style={{ width: ((c.n ?? 0) / most) * 100 + "%" }} /></span></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function questionAddress(q: Interrupt | undefined): string | undefined {
  return q && addressOf("inbox", [q.threadId ?? "", q.interruptId ?? ""]);
}

function describeDue(q: Interrupt, now: number): string {
  const at = readTime(q.dueTime);
  return at < now ? `${formatSpan(now - at)} late` : `in ${formatSpan(at - now)}`;
}

async function readOverview(now: number, signal: AbortSignal): Promise<Overview> {
  const listQuestions = (request: object): Promise<ListInterruptsResponse> => client.call("InterruptService/ListInterrupts", request, signal);
  const countThreads = async (state: string): Promise<string> => {
    const page = await client.call<ListThreadsResponse>("ThreadService/ListThreads", { filter: `state = "${state}"`, pageSize: mostListed }, signal);
    return describeCount(page.threads?.length ?? 0, page.nextPageToken);
  };
  const { graphs } = await client.call<ListGraphsResponse>("RegistryService/ListGraphs", { pageSize: mostFilters }, signal);
  const names = (graphs ?? []).map((g) => g.graph ?? "");
  const [open, oldest, next, late, working, failed, workers, byGraph, byGroup] = await Promise.all([
    countOpen(ownName() ? ["", 'mine = "true"'] : [""], signal),
    listQuestions({ pageSize: 1 }),
    listQuestions({ pageSize: 1, orderBy: "due_time" }),
    listQuestions({ pageSize: mostListed, filter: `due < ${JSON.stringify(new Date(now).toISOString())}` }),
    countThreads("BUSY"),
    countThreads("FAILED"),
    client.call<ListWorkersResponse>("RegistryService/ListWorkers", { pageSize: mostListed }, signal).catch(() => undefined), // a caller may not see them
    countOpen(names.map((n) => `graph = ${JSON.stringify(n)}`), signal),
    countOpen(ownGroups().slice(0, mostFilters).map((g) => `group = ${JSON.stringify(g)}`), signal),
  ]);
  const all = workers?.workers ?? [];
  const total = all.reduce((sum, w) => sum + (w.totalSlots ?? 0), 0);
  return {
    open: open[0],
    mine: open[1],
    oldest: oldest.interrupts?.[0],
    next: next.interrupts?.[0],
    late: describeCount(late.interrupts?.length ?? 0, late.nextPageToken),
    working,
    failed,
    slots: workers && { total, used: total - all.reduce((sum, w) => sum + (w.freeSlots ?? 0), 0) },
    graphs: names.map((name, i) => ({ name, n: byGraph[i], address: addressOf("inbox", [], { q: `graph:${name}` }) })),
    groups: ownGroups().slice(0, mostFilters).map((name, i) => ({ name, n: byGroup[i], address: addressOf("inbox", [], { q: `group:${name}` }) })),
  };
}

/** Counts what filters select, in pieces where the caller may see only some questions. */
async function countOpen(filters: readonly string[], signal: AbortSignal): Promise<(number | undefined)[]> {
  const count = async (some: readonly string[]): Promise<number[]> => {
    const { counts } = await client.call<CountInterruptsResponse>("InterruptService/CountInterrupts", { filters: some }, signal);
    return (counts ?? []).map((c) => Number(c.count ?? 0));
  };
  if (filters.length === 0) return [];
  try {
    return await count(filters);
  } catch (err) {
    if (signal.aborted) throw err;
    const pieces = await Promise.all(filters.map((f) => count([f]).catch(() => [undefined])));
    return pieces.flat();
  }
}

function describeCount(n: number, nextPageToken: string | undefined): string {
  return formatCount(n) + (nextPageToken ? "+" : "");
}

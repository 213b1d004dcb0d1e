// The overview: do people keep up? Open questions, the oldest one, what is late, how long answers took, and whose.

import type { ComponentChildren } from "preact";
import type { CountInterruptsResponse, Interrupt, InterruptStatistics, ListGraphsResponse, ListInterruptsResponse, ListThreadsResponse, ListWorkersResponse } from "../api/messages";
import { client, ownGroups, ownName } from "../api/session";
import { addressOf, type Route } from "../route";
import { titleOf } from "../question/title";
import { Text } from "../text/marks";
import { formatCount, formatExact, formatMoment, formatSpan, readDuration, readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { useLoaded } from "../ui/loaded";
import { HourChart, type Interval, readIntervals } from "./chart";
import { formatPart, formatWait, type Group, GroupTable, partInTime } from "./groups";

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
  statistics: InterruptStatistics;
  intervals: readonly Interval[];
  groups: readonly Group[];
}

export function OverviewScreen(_: { route: Route }): ComponentChildren {
  const now = useNow(readEvery);
  const { value: o, problem } = useLoaded((signal) => readOverview(now, signal), [now]);
  const known = (n: number | undefined): string => (n === undefined ? "–" : formatCount(n));
  return (
    <section class="page" aria-label="Overview">
      <header class="page-head"><h1>Overview</h1><span class="count">now, and the last 24 hours</span></header>
      {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
      {o && (
        <>
          <ul class="cards-of">
            <Card title="Open questions" value={known(o.open)} about={o.mine === undefined ? "of everybody" : `${known(o.mine)} for you`} href={addressOf("inbox")} />
            <Card title="Oldest" value={o.oldest ? formatSpan(now - readTime(o.oldest.createTime)) : "–"} about={o.oldest ? titleOf(o.oldest) : "nothing is open"} href={questionAddress(o.oldest)} />
            <Card title="Late" value={o.late} about={o.next ? `next step ${describeDue(o.next, now)}` : "nothing happens by itself"} href={addressOf("inbox", [], { q: "is:late" })} tone={o.late === "0" ? "" : "bad"} />
            <EndedCards of={o.statistics} />
            <Card title="Threads that work" value={o.working} about={o.slots?.total ? `${o.slots.used} of ${o.slots.total} worker slots in use` : "with a run that is not waiting"} href={addressOf("threads", [], { state: "BUSY" })} />
            <Card title="Threads that failed" value={o.failed} about="whose last run has failed" href={addressOf("threads", [], { state: "FAILED" })} tone={o.failed === "0" ? "" : "bad"} />
          </ul>
          <div class="panels">
            <section class="panel-of" aria-label="Asked and answered, by hour"><h2>Asked and answered, by hour</h2><HourChart intervals={o.intervals} /></section>
            <GroupTable groups={o.groups} />
            <GraphTable counts={o.graphs} />
          </div>
          <Origin of={o.statistics} now={now} />
        </>
      )}
    </section>
  );
}

function Card({ title, value, about, href, tone = "" }: { title: string; value: string; about: string; href: string | undefined; tone?: string | undefined }): ComponentChildren {
  const content = <><span>{title}</span><b>{value}</b><em class={tone}><Text of={about} /></em></>;
  return <li>{href === undefined ? <div class="card">{content}</div> : <a class="card" href={href}>{content}</a>}</li>;
}

/** What became of questions that ended. */
function EndedCards({ of }: { of: InterruptStatistics }): ComponentChildren {
  const all = of.all ?? {};
  const [late, defaulted, expired] = [all.total?.answeredLate, all.total?.defaulted, all.total?.expired].map((n) => Number(n ?? 0)) as [number, number, number];
  return (
    <>
      <Card title="Answered in time" value={formatPart(partInTime(all))} about={late > 0 ? `${formatCount(late)} late` : "before a reminder"} href={undefined} tone={late > 0 ? "bad" : ""} />
      <Card title="Median wait" value={formatWait(all.medianWait)} about={`95 of 100 within ${formatWait(all.p95Wait)}`} href={undefined} />
      <Card title="Defaults taken" value={formatCount(defaulted)} about={expired > 0 ? `and ${formatCount(expired)} without a default` : "nobody answered in time"} href={undefined} tone={defaulted + expired > 0 ? "bad" : ""} />
    </>
  );
}

/** Says what the counts of ended questions are of. */
function Origin({ of, now }: { of: InterruptStatistics; now: number }): ComponentChildren {
  const since = readTime(of.countsSince);
  return (
    <p class="faint" style={{ margin: "12px 0" }}>
      Asked, answered, late, waits and defaults are what this server did in the last 24 hours. It counts since <time title={formatExact(since)}>{formatMoment(since, now)}</time>, and other servers count their own.
      {of.partial && " There are more graphs, groups or tenants than it counts: some questions are missing."}
    </p>
  );
}

function GraphTable({ counts }: { counts: readonly Count[] }): ComponentChildren {
  const most = Math.max(1, ...counts.map((c) => c.n ?? 0));
  const ordered = counts.toSorted((a, b) => (b.n ?? 0) - (a.n ?? 0));
  return (
    <section class="panel-of" aria-label="Open questions by graph">
      <h2>By graph</h2>
      <table class="table">
        <thead><tr><th>Graph</th><th>Open</th><th><span class="sr">Share</span></th></tr></thead>
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
  const [open, oldest, next, late, working, failed, workers, byGraph, statistics] = await Promise.all([
    countOpen(ownName() ? ["", 'mine = "true"'] : [""], signal),
    listQuestions({ pageSize: 1 }),
    listQuestions({ pageSize: 1, orderBy: "due_time" }),
    listQuestions({ pageSize: mostListed, filter: `due < ${JSON.stringify(new Date(now).toISOString())}` }),
    countThreads("BUSY"),
    countThreads("FAILED"),
    client.call<ListWorkersResponse>("RegistryService/ListWorkers", { pageSize: mostListed }, signal).catch(() => undefined), // a caller may not see them
    countOpen(names.map((n) => `graph = ${JSON.stringify(n)}`), signal),
    client.call<InterruptStatistics>("InterruptService/GetInterruptStatistics", {}, signal),
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
    statistics,
    intervals: intervalsOf(statistics, statistics.all),
    groups: await readGroups(statistics, signal),
  };
}

/** Returns the groups with questions, and those of the caller, with what is open of them. */
async function readGroups(of: InterruptStatistics, signal: AbortSignal): Promise<Group[]> {
  const series = new Map((of.groups ?? []).map((g) => [g.group ?? "", g.series ?? {}]));
  const names = [...new Set([...ownGroups(), ...series.keys()])].filter((name) => name !== "").slice(0, mostFilters);
  const open = await countOpen(names.map((g) => `group = ${JSON.stringify(g)}`), signal);
  const groups: Group[] = names.map((name, i) => ({ name, open: open[i], series: series.get(name) ?? {}, intervals: intervalsOf(of, series.get(name)) }));
  groups.sort((a, b) => (b.open ?? 0) - (a.open ?? 0));
  const none = series.get("");
  if (none) groups.push({ name: "", open: undefined, series: none, intervals: intervalsOf(of, none) });
  if (of.others) groups.push({ name: undefined, open: undefined, series: of.others, intervals: intervalsOf(of, of.others) });
  return groups;
}

function intervalsOf(of: InterruptStatistics, series: InterruptStatistics["all"]): Interval[] {
  return readIntervals(readTime(of.beginTime), readDuration(of.interval), series?.intervals ?? []);
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

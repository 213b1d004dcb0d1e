// All threads, found by id, graph, state and labels.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ListThreadsResponse, Thread } from "../api/messages";
import { client, noteError } from "../api/session";
import { addressOf, navigate, type Route } from "../route";
import { Text } from "../text/marks";
import { formatExact, formatSpan, readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { useLoaded } from "../ui/loaded";
import { showProblem, showToast } from "../ui/toast";
import { RunBadge } from "./badge";

const pageSize = 100;
const states = [["", "Any state"], ["INTERRUPTED", "Waits for people"], ["BUSY", "Works"], ["FAILED", "Failed"], ["IDLE", "At rest"]] as const;

export function ThreadList({ route: { query } }: { route: Route }): ComponentChildren {
  const now = useNow();
  const text = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const [more, setMore] = useState<{ of: unknown; threads: readonly Thread[]; token: string }>({ of: undefined, threads: [], token: "" });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [version, setVersion] = useState(0);
  const filter = readThreadFilter(text, state);
  const list = (pageToken: string, signal?: AbortSignal): Promise<ListThreadsResponse> => client.call("ThreadService/ListThreads", { filter: filter.condition, pageSize, pageToken }, signal);
  const { value: first, problem } = useLoaded((signal) => list("", signal), [filter.condition, version]);
  const added = more.of === first ? more : { threads: [], token: first?.nextPageToken ?? "" };
  const threads = [...(first?.threads ?? []), ...added.threads].filter((t) => filter.words.every((w) => (t.threadId ?? "").toLowerCase().includes(w)));
  const go = (change: Record<string, string>): void => navigate(addressOf("threads", [], { q: text, state, ...change }), true);
  const loadMore = (): void => {
    list(added.token).then((page) => setMore({ of: first, threads: [...added.threads, ...(page.threads ?? [])], token: page.nextPageToken ?? "" }), noteError);
  };
  const open = (e: Event): void => {
    e.preventDefault();
    if (text.trim() !== "" && !text.includes(":")) navigate(addressOf("threads", [text.trim()]));
  };
  const forEachChosen = async (what: string, call: (threadId: string) => Promise<unknown>): Promise<void> => {
    const results = await Promise.allSettled([...chosen].map(call));
    const failed = results.find((r) => r.status === "rejected");
    if (failed) showProblem(`${results.filter((r) => r.status === "rejected").length} of ${chosen.size} are not ${what}`, failed.reason);
    else showToast({ title: `${chosen.size} ${what}`, about: "" });
    setChosen(new Set());
    setVersion(version + 1);
  };
  const toggle = (id: string): void => {
    const all = new Set(chosen);
    if (!all.delete(id)) all.add(id);
    setChosen(all);
  };
  return (
    <section class="page" aria-label="Threads">
      <header class="page-head">
        <h1>Threads</h1>
        <form class="sift" onSubmit={open} role="search">
          <input placeholder="Id, graph:NAME, label:KEY=VALUE" aria-label="Find threads" value={text} onInput={(e) => go({ q: e.currentTarget.value })} />
          <select aria-label="State" value={state} onChange={(e) => go({ state: e.currentTarget.value })}>
            {states.map(([value, title]) => <option value={value}>{title}</option>)}
          </select>
        </form>
      </header>
      {(filter.problem || problem) && <p class="problem" role="alert"><Text of={filter.problem || problem} /></p>}
      {chosen.size > 0 && (
        <div class="bulk" role="toolbar" aria-label="Several threads">
          <b>{chosen.size} chosen</b>
          <button type="button" class="ghost danger" onClick={() => confirmed(`Cancel the runs of ${chosen.size} threads? Their open questions are dropped.`) && void forEachChosen("cancelled", (threadId) => client.call("GraphService/CancelRun", { threadId }))}>Cancel runs</button>
          <button type="button" class="ghost danger" onClick={() => confirmed(`Delete ${chosen.size} threads with everything that belongs to them? This can't be undone.`) && void forEachChosen("deleted", (threadId) => client.call("ThreadService/DeleteThread", { threadId, force: true }))}>Delete</button>
        </div>
      )}
      <table class="table">
        <thead><tr><th><span class="sr">Choose</span></th><th>Thread</th><th>Graph</th><th>State</th><th>Labels</th><th>Changed</th></tr></thead>
        <tbody>
          {threads.map((t) => (
            <tr key={t.threadId}>
              <td><input type="checkbox" aria-label={`Choose ${t.threadId}`} checked={chosen.has(t.threadId!)} onChange={() => toggle(t.threadId!)} /></td>
              <td class="mono"><a href={addressOf("threads", [t.threadId!])}><Text of={t.threadId!} /></a></td>
              <td><Text of={t.graph ?? ""} /></td>
              <td><RunBadge state={t.state} /></td>
              <td class="labels">{Object.entries(t.metadata ?? {}).map(([k, v]) => <span class="label-of"><Text of={`${k}=${v}`} /></span>)}</td>
              <td title={formatExact(readTime(t.updateTime))}>{formatSpan(now - readTime(t.updateTime))} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
      {first && threads.length === 0 && <p class="empty">No thread is like this.</p>}
      {added.token && <button type="button" class="ghost" onClick={loadMore}>More</button>}
    </section>
  );
}

function confirmed(question: string): boolean {
  return window.confirm(question);
}

/** Reads what is searched for: conditions that the server has an index for, and parts of ids among what is shown. */
function readThreadFilter(text: string, state: string): { condition: string; words: string[]; problem: string } {
  const conditions = state ? [`state = ${JSON.stringify(state)}`] : [];
  const words: string[] = [];
  let problem = "";
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const graph = /^graph:(.+)$/.exec(part)?.[1];
    const label = /^label:([^=]+)=(.+)$/.exec(part);
    if (graph) conditions.push(`graph = ${JSON.stringify(graph)}`);
    else if (label) conditions.push(`metadata.${label[1]} = ${JSON.stringify(label[2])}`);
    else if (/^[a-z]+:\w/.test(part) && !part.startsWith("graph:") && !part.startsWith("label:")) problem = `${part}: want graph:NAME or label:KEY=VALUE`;
    else if (!part.endsWith(":")) words.push(part.toLowerCase());
  }
  return { condition: conditions.join(" AND "), words, problem };
}

// Workers: who is attached, and what they take.

import type { ComponentChildren } from "preact";
import type { ListWorkersResponse, WorkerInfo } from "../api/messages";
import { client } from "../api/session";
import { addressOf, type Route } from "../route";
import { Text } from "../text/marks";
import { formatExact, formatSpan, readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { useLoaded } from "../ui/loaded";

const readEvery = 3000;
const pageSize = 500;

export function WorkersScreen(_: { route: Route }): ComponentChildren {
  const now = useNow(readEvery);
  const { value, problem } = useLoaded((signal) => client.call<ListWorkersResponse>("RegistryService/ListWorkers", { pageSize }, signal), [now]);
  const workers = value?.workers ?? [];
  const slots = workers.reduce((sum, w) => sum + (w.totalSlots ?? 0), 0);
  const free = workers.reduce((sum, w) => sum + (w.freeSlots ?? 0), 0);
  return (
    <section class="page" aria-label="Workers">
      <header class="page-head">
        <h1>Workers</h1>
        {workers.length > 0 && <span class="count">{workers.length} attached, {slots - free} of {slots} slots in use{value?.nextPageToken ? ", and more" : ""}</span>}
      </header>
      {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
      {value && workers.length === 0 ? (
        <div class="empty"><b>No worker is attached</b><p>Nodes that run outside of the server wait for a worker. Nodes of expressions and questions need none.</p></div>
      ) : (
        <table class="table">
          <thead><tr><th>Worker</th><th>Takes</th><th>Slots in use</th><th>Build</th><th>Heard of</th></tr></thead>
          <tbody>{workers.map((w) => <WorkerRow key={w.workerId} worker={w} now={now} />)}</tbody>
        </table>
      )}
    </section>
  );
}

function WorkerRow({ worker: w, now }: { worker: WorkerInfo; now: number }): ComponentChildren {
  const total = w.totalSlots ?? 0;
  const used = total - (w.freeSlots ?? 0);
  const graphs = Map.groupBy(w.nodes ?? [], (n) => n.slice(0, n.indexOf("/")));
  return (
    <tr>
      <td class="mono"><Text of={w.workerId ?? ""} />{w.draining && <span class="badge waits"><i />finishes what it has</span>}
        <div>{Object.entries(w.labels ?? {}).map(([k, v]) => <span class="label-of"><Text of={`${k}=${v}`} /></span>)}</div>
      </td>
      <td>{[...graphs].map(([graph, nodes]) => (
        <div><a href={addressOf("graphs", [graph])}><Text of={graph} /></a> <span class="faint"><Text of={nodes.map((n) => n.slice(graph.length + 1)).join(", ")} /></span></div>
      ))}</td>
      <td><meter min={0} max={Math.max(1, total)} value={used} aria-label="Slots in use" /> {used} of {total}</td>
      <td class="mono"><Text of={w.buildId ?? ""} /></td>
      <td title={formatExact(readTime(w.lastBeatTime))}>{formatSpan(Math.max(0, now - readTime(w.lastBeatTime)))} ago</td>
    </tr>
  );
}

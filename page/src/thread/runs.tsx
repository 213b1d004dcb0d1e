// The runs of a thread.

import type { ComponentChildren } from "preact";
import type { ListRunsResponse } from "../api/messages";
import { client } from "../api/session";
import { Text } from "../text/marks";
import { shortName } from "../text/people";
import { formatExact, formatMoment, readTime } from "../text/time";
import { useLoaded } from "../ui/loaded";
import { RunBadge } from "./badge";

export function Runs({ threadId, version, now }: { threadId: string; version: string; now: number }): ComponentChildren {
  const { value, problem } = useLoaded((signal) => client.call<ListRunsResponse>("GraphService/ListRuns", { threadId, pageSize: 100 }, signal), [threadId, version]);
  if (problem) return <p class="problem"><Text of={problem} /></p>;
  return (
    <ul class="runs">
      {(value?.runs ?? []).map((r) => (
        <li key={r.runId}>
          <RunBadge state={r.state} />
          <span class="mono"><Text of={r.runId ?? ""} /></span>
          {r.startedBy && <span>by <Text of={shortName(r.startedBy)} /></span>}
          <time title={formatExact(readTime(r.createTime))}>{formatMoment(readTime(r.createTime), now)}</time>
          {r.failure?.message && <p class="problem"><Text of={`${r.failure.node ? r.failure.node + ": " : ""}${r.failure.message}`} /></p>}
        </li>
      ))}
      {value && (value.runs ?? []).length === 0 && <li class="faint">No run yet.</li>}
      {value?.nextPageToken && <li class="faint">The newest 100 runs.</li>}
    </ul>
  );
}

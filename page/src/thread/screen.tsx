// A thread with its graph, its state, what happened, and what it was before.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Event, StateSnapshot } from "../api/messages";
import { client } from "../api/session";
import { useStore } from "../api/store";
import { JsonObject, readPayload } from "../json/value";
import { useKeys } from "../keys";
import { addressOf, navigate, type Route } from "../route";
import { Text } from "../text/marks";
import { formatSpan, readTime } from "../text/time";
import { useNow } from "../ui/clock";
import { Icon } from "../ui/icons";
import { Key } from "../ui/key";
import { useLater } from "../ui/later";
import { useLoaded } from "../ui/loaded";
import { Tabs } from "../ui/tabs";
import { RunBadge } from "./badge";
import { Diagram } from "./diagram";
import { lastDurations, readDurations } from "./durations";
import { idOf, listBranches, placeOfEvent } from "./history";
import { Scrubber } from "./scrubber";
import { StateView } from "./state";
import { type Known, ThreadFollower } from "./thread";
import "./style";

export function ThreadScreen({ route }: { route: Route }): ComponentChildren {
  const threadId = route.path[0]!;
  return <ThreadView key={threadId} threadId={threadId} query={route.query} />;
}

type DialogName = "fork" | "again" | "cancel";

function ThreadView({ threadId, query }: { threadId: string; query: URLSearchParams }): ComponentChildren {
  const follower = useMemo(() => new ThreadFollower(threadId), [threadId]);
  const known = useStore(follower.known);
  useEffect(() => {
    follower.start();
    return () => follower.stop();
  }, [follower]);
  if (!known.thread) return <section class="page" aria-label="Thread">{known.problem && <p class="problem" role="alert"><Text of={known.problem} /></p>}</section>;
  return <LoadedThread known={known} follower={follower} query={query} />;
}

function LoadedThread({ known, follower, query }: { known: Known; follower: ThreadFollower; query: URLSearchParams }): ComponentChildren {
  const now = useNow();
  const [dialog, setDialog] = useState<DialogName | undefined>(undefined);
  const [node, setNode] = useState("");
  const { history, events, graph } = known;
  const thread = known.thread!;
  const threadId = thread.threadId!;
  const chosen = history.find(query.get("at") ?? "") ?? history.head;
  const line = useMemo(() => (chosen ? history.lineThrough(idOf(chosen)) : []), [history, idOf(chosen)]);
  const at = line.findIndex((s) => idOf(s) === idOf(chosen));
  const isHead = idOf(chosen) === idOf(history.head);
  const tab = query.get("tab") ?? "state";
  const others = useLater(tab !== "state", () => import("./other_tabs"));
  const actions = useLater(dialog !== undefined, () => import("./actions"));
  const durations = useMemo(() => readDurations(events), [events]);
  const last = useMemo(() => lastDurations(events, durations), [events, durations]);
  const isRunning = isHead && thread.state === "THREAD_STATE_BUSY";
  const run = useMemo(() => ({ threadId, namespace: [], line: line.slice(0, at + 1), isRunning, until: line[at + 1]?.createTime }), [line, at, isRunning]);
  const question = (thread.interrupts ?? []).find((q) => q.state === "INTERRUPT_STATE_OPEN");
  const isActive = thread.state === "THREAD_STATE_BUSY" || thread.state === "THREAD_STATE_INTERRUPTED";

  const go = (change: Record<string, string>): void => navigate(addressOf("threads", [threadId], { ...Object.fromEntries(query), ...change }), true);
  const choose = (id: string): void => go({ at: id === idOf(history.head) ? "" : id });
  const step = (by: number): void => line[at + by] && choose(idOf(line[at + by]));
  useKeys([
    { keys: ["ArrowLeft", "["], about: "earlier checkpoint", run: () => step(-1) },
    { keys: ["ArrowRight", "]"], about: "later checkpoint", run: () => step(1) },
    ...(chosen ? [{ keys: ["f"], about: "fork from here", run: () => setDialog("fork") }, { keys: ["r"], about: "run again from here", run: () => setDialog("again") }] : []),
    ...(question ? [{ keys: ["Enter"], about: "open the question", run: () => navigate(addressOf("inbox", [threadId, question.interruptId!])) }] : []),
  ]);
  const pick = useMemo(() => (place: string) => setNode((picked) => (picked === place ? "" : place)), []);
  const shownEvents = node ? events.filter((e) => (placeOfEvent(e) + "/").startsWith(node + "/")) : events;
  return (
    <section class="thread-screen" aria-label="Thread">
      <header>
        <div>
          <div class="crumb"><a href={addressOf("threads")}>Threads</a><span aria-hidden="true">›</span><span class="mono"><Text of={threadId} /></span></div>
          <h1><Text of={threadId} /><RunBadge state={thread.state} /></h1>
          <div class="about-thread">
            {thread.graph && <a href={addressOf("graphs", [thread.graph])}><Text of={thread.graph} /> <span class="faint"><Text of={thread.graphVersion ?? ""} /></span></a>}
            <span>{line.length} {line.length === 1 ? "checkpoint" : "checkpoints"}</span>
            <span>began {formatSpan(now - readTime(thread.createTime))} ago</span>
            {thread.fault && <span class="problem">servers failed over it {thread.fault.failures} times</span>}
          </div>
        </div>
        <div class="acts">
          {chosen && <button type="button" class="ghost" onClick={() => setDialog("fork")}><Icon name="fork" size={14} />Fork from here<Key of="F" /></button>}
          {chosen && <button type="button" class="ghost" onClick={() => setDialog("again")}><Icon name="again" size={14} />Run again<Key of="R" /></button>}
          {isActive && <button type="button" class="ghost danger" onClick={() => setDialog("cancel")}><Icon name="stop" size={14} />Cancel</button>}
          {question && <a class="main" href={addressOf("inbox", [threadId, question.interruptId!])}><Icon name="ask" size={14} />Answer</a>}
        </div>
      </header>
      <div class="columns">
        <section class="canvas" aria-label="Graph" tabIndex={0}>
          {graph?.spec ? <Diagram spec={graph.spec} run={run} durations={last} picked={node} pick={pick} open={query.get("open") ?? ""} setOpen={(open) => go({ open })} /> : <p class="faint">The graph is not known.</p>}
          <div class="legend">{["done", "waits", "runs", "failed"].map((s) => <span><i class={s} />{s}</span>)}</div>
        </section>
        <section class="aside" aria-label="About the thread">
          <Tabs
            label="About the thread"
            tabs={[{ id: "state", title: "State" }, { id: "timeline", title: "Timeline", count: shownEvents.length }, { id: "runs", title: "Runs" }, { id: "branches", title: "Branches", count: listBranches(history).length }]}
            chosen={tab}
            choose={(t) => go({ tab: t === "state" ? "" : t })}
            aside={<span class="faint">{node ? <>only <Text of={node.split("/").map(decodeURIComponent).join(" › ")} /> <button type="button" class="reveal" onClick={() => setNode("")}>all</button></> : chosen && `after step ${chosen.step ?? 0}`}</span>}
          >
            {tab === "state" && <StateAt threadId={threadId} at={chosen} before={line[at - 1]} />}
            {others && tab === "timeline" && <others.Timeline events={shownEvents} durations={durations} dropped={known.dropped} until={isHead ? Infinity : lastEventOf(events, line[at + 1])} now={now} />}
            {others && tab === "runs" && <others.Runs threadId={threadId} version={thread.etag ?? ""} now={now} />}
            {others && tab === "branches" && <others.Branches history={history} chosen={idOf(chosen)} choose={choose} now={now} />}
          </Tabs>
        </section>
      </div>
      <Scrubber line={line} chosen={idOf(chosen)} choose={choose} next={line.at(-1) === history.head ? (history.head?.next ?? []).join(" + ") : ""} isWaiting={thread.state === "THREAD_STATE_INTERRUPTED"} now={now} />
      {actions && dialog === "fork" && chosen && <actions.ForkDialog thread={thread} at={chosen} close={() => setDialog(undefined)} done={() => undefined} />}
      {actions && dialog === "again" && chosen && <actions.RunAgainDialog thread={thread} at={chosen} close={() => setDialog(undefined)} done={() => choose("")} />}
      {actions && dialog === "cancel" && chosen && <actions.CancelDialog thread={thread} at={chosen} close={() => setDialog(undefined)} done={() => void follower.refresh()} />}
    </section>
  );
}

/** Returns the number of the last event before the checkpoint that comes next. */
function lastEventOf(events: readonly Event[], next: StateSnapshot | undefined): number {
  const e = events.find((e) => e.checkpoint?.checkpoint?.checkpointId === idOf(next));
  return e ? Number(e.cursor?.sequence ?? 0) - 1 : Infinity;
}

function StateAt({ threadId, at, before }: { threadId: string; at: StateSnapshot | undefined; before: StateSnapshot | undefined }): ComponentChildren {
  const fetchState = async (s: StateSnapshot | undefined, signal: AbortSignal): Promise<JsonObject> => {
    if (!s) return new JsonObject();
    const got = await client.call<StateSnapshot>("ThreadService/GetState", { threadId, at: s.checkpoint }, signal);
    const values = readPayload(got.values);
    return values instanceof JsonObject ? values : new JsonObject();
  };
  const { value, problem } = useLoaded(async (signal) => Promise.all([fetchState(at, signal), fetchState(before, signal)]), [threadId, idOf(at), idOf(before)]);
  if (problem) return <p class="problem"><Text of={problem} /></p>;
  return value ? <StateView now={value[0]} before={value[1]} /> : null;
}

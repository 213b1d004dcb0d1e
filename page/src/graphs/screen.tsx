// Graphs: all of them, or one with its drawing, its versions, its nodes, and a form that starts a run.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { CallError, newRequestId } from "../api/connect";
import type { Graph, ListGraphsResponse, NodeSpec, Run } from "../api/messages";
import { client, noteError } from "../api/session";
import { dropHidden, FieldEntry, JsonEntry, type Problems } from "../form/form";
import { initialValue, readSchema } from "../form/schema";
import { type Json, JsonObject, printJson, readPayload } from "../json/value";
import { addressOf, navigate, type Route } from "../route";
import { plainText, Text } from "../text/marks";
import { formatExact, formatMoment, readTime } from "../text/time";
import { Diagram } from "../thread/diagram";
import { useNow } from "../ui/clock";
import { Icon } from "../ui/icons";
import { useLoaded } from "../ui/loaded";
import { Tabs } from "../ui/tabs";
import { showToast } from "../ui/toast";
import "../thread/style";

export function GraphsScreen({ route }: { route: Route }): ComponentChildren {
  const [name] = route.path;
  return name ? <GraphView key={name} name={name} query={route.query} /> : <GraphList />;
}

const pageSize = 500;

function GraphList(): ComponentChildren {
  const { value, problem } = useLoaded((signal) => client.call<ListGraphsResponse>("RegistryService/ListGraphs", { pageSize }, signal), []);
  const graphs = value?.graphs ?? [];
  return (
    <section class="page" aria-label="Graphs">
      <header class="page-head"><h1>Graphs</h1>{graphs.length > 0 && <span class="count">{graphs.length}{value?.nextPageToken ? "+" : ""}</span>}</header>
      {problem && <p class="problem" role="alert"><Text of={problem} /></p>}
      {value && graphs.length === 0 ? (
        <div class="empty"><b>No graph is here</b><p>Give graph files with <code>--graphs</code>, put one with <code>graphd graph put</code>, or start a worker that brings its own.</p></div>
      ) : (
        <table class="table">
          <thead><tr><th>Graph</th><th>What it is for</th><th>Version</th><th>Versions</th></tr></thead>
          <tbody>
            {graphs.map((g) => (
              <tr key={g.graph}>
                <td><a href={addressOf("graphs", [g.graph!])}><Text of={g.graph!} /></a></td>
                <td dir="auto"><Text of={g.description ?? ""} /></td>
                <td class="mono"><Text of={g.version ?? ""} /></td>
                <td>{(g.versions ?? []).length}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function GraphView({ name, query }: { name: string; query: URLSearchParams }): ComponentChildren {
  const now = useNow(60_000);
  const version = query.get("version") ?? "";
  const tab = query.get("tab") ?? "start";
  const { value: g, problem } = useLoaded((signal) => client.call<Graph>("RegistryService/GetGraph", { graph: name, version, view: "GRAPH_VIEW_FULL" }, signal), [name, version]);
  const go = (change: Record<string, string>): void => navigate(addressOf("graphs", [name], { ...Object.fromEntries(query), ...change }), true);
  if (!g) return <section class="page" aria-label="Graph">{problem && <p class="problem" role="alert"><Text of={problem} /></p>}</section>;
  const nodes = g.spec?.nodes ?? [];
  return (
    <section class="thread-screen" aria-label="Graph">
      <header>
        <div>
          <div class="crumb"><a href={addressOf("graphs")}>Graphs</a><span aria-hidden="true">›</span><span class="mono"><Text of={name} /></span></div>
          <h1><Text of={name} /></h1>
          <div class="about-thread"><span dir="auto"><Text of={g.description ?? ""} /></span>{g.createTime && <span title={formatExact(readTime(g.createTime))}>put {formatMoment(readTime(g.createTime), now)}</span>}</div>
        </div>
        <div class="acts">
          <select aria-label="Version" value={g.version} onChange={(e) => go({ version: e.currentTarget.value })}>
            {(g.versions ?? []).toReversed().map((v, i) => <option value={v}>{plainText(v)}{i === 0 ? ", the newest" : ""}</option>)}
          </select>
          <a class="ghost" href={addressOf("threads", [], { q: `graph:${name}` })}><Icon name="threads" size={14} />Its threads</a>
          <a class="ghost" href={addressOf("inbox", [], { q: `graph:${name}` })}><Icon name="inbox" size={14} />Its questions</a>
        </div>
      </header>
      <div class="columns">
        <section class="canvas" aria-label="Drawing" tabIndex={0}>{g.spec && <Diagram spec={g.spec} open={query.get("open") ?? ""} setOpen={(open) => go({ open })} />}</section>
        <section class="aside" aria-label="About the graph">
          <Tabs label="About the graph" tabs={[{ id: "start", title: "Start a run" }, { id: "nodes", title: "Nodes", count: nodes.length }, { id: "json", title: "JSON" }]} chosen={tab} choose={(t) => go({ tab: t === "start" ? "" : t })}>
            {tab === "start" && <StartForm key={g.version} graph={g} />}
            {tab === "nodes" && <Nodes nodes={nodes} />}
            {tab === "json" && <pre tabIndex={0}><Text of={JSON.stringify(g.spec, null, 2)} /></pre>}
          </Tabs>
        </section>
      </div>
    </section>
  );
}

function Nodes({ nodes }: { nodes: readonly NodeSpec[] }): ComponentChildren {
  const kindOf = (n: NodeSpec): string => (n.ask ? "asks a person" : n.remote ? "runs in a worker" : n.graph ? `runs the graph ${n.graph.graph ?? ""}` : n.expr ? "expressions" : "a function of the server");
  return (
    <dl class="state">
      {nodes.map((n) => (
        <div key={n.name}>
          <dt><Text of={n.name ?? ""} /><span><Text of={kindOf(n)} /></span></dt>
          <dd class="faint" dir="auto"><Text of={n.description ?? ""} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** A form for the input of a new run. */
function StartForm({ graph }: { graph: Graph }): ComponentChildren {
  const form = useMemo(() => readSchema(readPayload(graph.inputSchema)), [graph]);
  const [input, setInput] = useState<Json | undefined>(() => initialValue(form) ?? new JsonObject());
  const [threadId, setThreadId] = useState("");
  const [problems, setProblems] = useState<Problems>({});
  const [isBusy, setBusy] = useState(false);
  const sent = useRef({ text: "", id: "" });
  const start = (e: Event): void => {
    e.preventDefault();
    const text = printJson(dropHidden(form, input) ?? new JsonObject());
    if (text + threadId !== sent.current.text) sent.current = { text: text + threadId, id: newRequestId() };
    setBusy(true);
    const run = { graph: graph.graph, graphVersion: graph.version, threadId, createThread: true, input: { json: text } };
    client.call<Run>("GraphService/StartRun", { run, requestId: sent.current.id }).then(
      (r) => {
        showToast({ title: "The run has started", about: r.threadId ?? "" });
        navigate(addressOf("threads", [r.threadId!]));
      },
      (err: unknown) => {
        noteError(err);
        const found: Record<string, string> = {};
        if (err instanceof CallError) for (const v of err.violations) found[/input(\/.*)?$/.exec(v.field)?.[1] ?? ""] ??= v.description;
        setProblems(Object.keys(found).length > 0 ? found : { "": err instanceof Error ? err.message : String(err) });
      },
    ).finally(() => setBusy(false));
  };
  const entry = { pointer: "", value: input, enter: setInput, problems, isRequired: true };
  return (
    <form class="fields" onSubmit={start}>
      {form.kind === "json" ? <JsonEntry field={{ ...form, title: form.title || "Input, as JSON" }} rows={8} {...entry} /> : <FieldEntry field={{ ...form, title: form.title || "Input" }} {...entry} />}
      <div class="field">
        <label class="label" for="thread-id">Thread<i>optional</i></label>
        <input id="thread-id" value={threadId} autoComplete="off" onInput={(e) => setThreadId(e.currentTarget.value)} />
        <span class="hint">A name for it; without one the server chooses.</span>
      </div>
      {problems[""] && form.kind !== "json" && <p class="problem" role="alert"><Text of={problems[""]} /></p>}
      <div><button type="submit" class="main" disabled={isBusy || input === undefined}><Icon name="play" size={14} />Start</button></div>
    </form>
  );
}

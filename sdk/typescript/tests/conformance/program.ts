/** Builds graphs from the short descriptions in the case files. */

import { setTimeout } from "node:timers/promises";
import { AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { AnyValue, EphemeralValue, Topic } from "../../src/channels/index.js";
import {
  Annotation,
  Command,
  type CompiledStateGraph,
  DeltaChannel,
  END,
  getConfig,
  getWriter,
  InMemoryCache,
  interrupt,
  isCommand,
  MemorySaver,
  messagesStateReducer,
  Overwrite,
  REMOVE_ALL_MESSAGES,
  type RunControl,
  Send,
  START,
  StateGraph,
  UntrackedValueChannel,
} from "../../src/index.js";
import bodies from "./node_bodies.json" with { type: "json" };

export type GraphDescription = {
  name: string;
  state: Record<string, string>;
  nodes: Record<string, string>;
  edges: [string | string[], string][];
  compile: Record<string, any>;
  conditional_edges?: { from: string; path: string; path_map?: string[] | Record<string, string> }[];
  node_options?: Record<string, Record<string, any>>;
  node_defaults?: { error_handler?: string };
  node_input_schema?: Record<string, string[]>;
  input_schema?: string[];
  output_schema?: string[];
};

/** JavaScript for the code of cases, by that code. */
export type Bodies = Record<string, string>;

const BODIES = bodies as Bodies;

class Boom extends Error {
  override name = "Boom";
}
class Other extends Error {
  override name = "Other";
}

/** Classes of Python that nodes throw and that policies of retries name. */
const ERRORS = Object.fromEntries(
  ["ValueError", "RuntimeError", "OSError", "ConnectionError", "KeyError"].map((name) => [
    name,
    class extends Error {
      override name = name;
    },
  ]),
);

/** What a person says. */
const Answer = {
  title: "Answer",
  description: "What a person says.",
  type: "object",
  properties: { text: { type: "string", title: "Text" } },
  required: ["text"],
};

const combined = (reducer: (a: any, b: any) => any, initial: unknown) =>
  Annotation<any>({ reducer, default: () => initial });
const CHANNELS: Record<string, () => unknown> = {
  last: () => Annotation(),
  any: () => new AnyValue(),
  untracked: () => new UntrackedValueChannel(),
  ephemeral: () => new EphemeralValue(),
  topic: () => new Topic(),
  "topic+": () => new Topic({ accumulate: true }),
  "list+": () => combined((a, b) => a.concat(b), []),
  "int+": () => combined((a, b) => a + b, 0),
  "str+": () => combined((a, b) => a + b, ""),
  "sorted+": () => combined((a, b) => a.concat(b).sort(), []),
  comma: () => combined((a, b) => [a, b].filter(Boolean).join(", "), ""),
  merge: () => combined((a, b) => ({ ...a, ...b }), {}),
  messages: () => Annotation({ reducer: messagesStateReducer as never, default: () => [] }),
  "delta+": () =>
    new DeltaChannel<any>((state, writes) => state.concat(...writes), { initialValueFactory: () => [] }),
  "delta2+": () =>
    new DeltaChannel<any>((state, writes) => state.concat(...writes), { initialValueFactory: () => [] }),
};

/** Everything that the nodes of one case can touch. */
export class World {
  readonly ran: string[] = [];
  readonly saver = new MemorySaver();
  readonly graphs = new Map<string, CompiledStateGraph>();
  /** By which the node of a case stops its run. */
  control: RunControl | undefined;
  constructor(private readonly bodies: Bodies = BODIES) {}

  /** What nodes remember outside of the graph; 0 at first. */
  readonly mem: Record<string, unknown> = new Proxy({}, { get: (known: any, name) => known[name] ?? 0 });

  private readonly names = {
    AIMessage,
    Answer,
    Boom,
    Command,
    END,
    HumanMessage,
    Other,
    Overwrite,
    REMOVE_ALL_MESSAGES,
    RemoveMessage,
    START,
    Send,
    SystemMessage,
    ToolMessage,
    ...ERRORS,
    callSub: (name: string, value: unknown) => this.graphs.get(name)?.invoke(value as never),
    ctl: { requestDrain: (reason: string) => this.control?.requestDrain(reason) },
    interrupt,
    isCommand,
    at: (value: Record<string, unknown>, key: string) => {
      if (!(key in value)) throw new (ERRORS.KeyError as ErrorConstructor)(`'${key}'`);
      return value[key];
    },
    fail: (name: string) => {
      throw Object.assign(new Error(name), { name });
    },
    keys: (value: object) => Object.keys(value).sort(),
    mem: this.mem,
    sleep: (seconds: number) => setTimeout(patient(seconds)),
    /** Ends when its task is stopped. */
    asleep: (seconds: number) => setTimeout(patient(seconds), undefined, { signal: getConfig().signal }),
    str: describe,
    truthy,
    write: (value: unknown) => getWriter()?.(value),
  };

  /** A function that runs the body which stands for the code of a case. */
  private compileBody(code: string, entered: string | undefined) {
    const AsyncFunction = (async () => {}).constructor as new (
      ...parts: string[]
    ) => (...args: unknown[]) => unknown;
    const run = new AsyncFunction("state", "error", ...Object.keys(this.names), this.bodies[code] as string);
    return async (state: unknown, error: unknown) => {
      if (entered !== undefined) this.ran.push(entered);
      return await run(state, error, ...Object.values(this.names));
    };
  }

  /** Compiles the graphs of a case, children first, as they are listed. */
  build(descriptions: readonly GraphDescription[]): void {
    for (const one of descriptions) this.graphs.set(one.name, this.compile(one));
  }

  private compile(graph: GraphDescription): CompiledStateGraph {
    const channels = Object.fromEntries(
      Object.entries(graph.state).map(([key, kind]) => [key, CHANNELS[kind]?.()]),
    );
    const part = (keys: string[]) =>
      Annotation.Root(Object.fromEntries(keys.map((key) => [key, channels[key] ?? Annotation()])) as never);
    const builder = new StateGraph(Annotation.Root(channels as never), {
      ...(graph.input_schema && { input: part(graph.input_schema) }),
      ...(graph.output_schema && { output: part(graph.output_schema) }),
    } as never) as any;
    const { error_handler: standard } = graph.node_defaults ?? {};
    if (standard) builder.setNodeDefaults({ errorHandler: this.compileBody(standard, "handler(default)") });
    for (const [name, code] of Object.entries(graph.nodes)) {
      const target = code.startsWith("<subgraph ")
        ? this.graphs.get(code.slice(10, -1))
        : this.compileBody(code, name);
      const reads = graph.node_input_schema?.[name];
      builder.addNode(name, target, { ...this.options(name, graph), ...(reads && { input: part(reads) }) });
    }
    for (const [source, target] of graph.edges) builder.addEdge(edge(source), edge(target));
    for (const { from, path, path_map: paths } of graph.conditional_edges ?? []) {
      const map =
        paths &&
        Object.fromEntries(
          Object.entries(
            Array.isArray(paths) ? Object.fromEntries(paths.map((one) => [one, one])) : paths,
          ).map(([key, target]) => [key, edge(target)]),
        );
      builder.addConditionalEdges(edge(from), this.compileBody(path, undefined), map);
    }
    return this.compileBuilder(builder, graph.compile);
  }

  private compileBuilder(builder: any, given: Record<string, any>): CompiledStateGraph {
    const { checkpointer, interrupt_before, interrupt_after, cache, step_timeout, drift } = given;
    const savers: Record<string, unknown> = { saver: this.saver, persist: true, disabled: false };
    const compiled = builder.compile({
      ...(given.name && { name: `${given.name}-typescript` }),
      checkpointer: savers[checkpointer],
      interruptBefore: interrupt_before,
      interruptAfter: interrupt_after,
      ...(drift && { drift }),
      ...(cache && { cache: new InMemoryCache() }),
    });
    if (step_timeout) compiled.stepTimeout = step_timeout * 1000;
    return compiled;
  }

  private options(name: string, graph: GraphDescription): Record<string, unknown> {
    const { retry, error_handler, cache, defer, timeout } = graph.node_options?.[name] ?? {};
    const handler = error_handler && this.compileBody(error_handler, `handler(${name})`);
    return {
      // Any node may return a command; what it reaches is for other tests.
      ends: Object.keys(graph.nodes),
      ...(defer && { defer }),
      ...(timeout && { timeout: timeout * 1000 }),
      ...(cache && { cachePolicy: {} }),
      ...(handler && { errorHandler: handler }),
      ...(retry && { retryPolicy: readRetry(retry) }),
    };
  }
}

/** Milliseconds. Nodes beside it go first, on a busy machine too: a tenth of a second lasts ten times as long. */
function patient(seconds: number): number {
  return seconds * (seconds > 0.1 ? 1_000 : 10_000);
}

function readRetry(given: Record<string, any>): Record<string, unknown> {
  const { max_attempts, initial_interval, backoff_factor, max_interval, jitter, retry_on } = given;
  const milliseconds = (seconds: number | undefined) => seconds && seconds * 1000;
  return {
    maxAttempts: max_attempts,
    initialInterval: milliseconds(initial_interval),
    backoffFactor: backoff_factor,
    maxInterval: milliseconds(max_interval),
    jitter,
    ...(retry_on && { retryOn: (error: Error) => retry_on.includes(error.name) }),
  };
}

function edge(name: any): any {
  const known: Record<string, string> = { START, END };
  return Array.isArray(name) ? name.map(edge) : (known[name] ?? name);
}

/** A value as Python writes it, so that texts of cases can be compared. */
function describe(value: any): string {
  return typeof value === "string" ? value : represent(value);
}

/** Whether a value counts as true in Python. */
function truthy(value: any): boolean {
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

function represent(value: any): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return value.includes("'") ? `"${value}"` : `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(represent).join(", ")}]`;
  if (isCommand(value)) {
    const [only] = value.goto as unknown[];
    return `Command(goto=${represent(only)})`;
  }
  if (value instanceof Send) return `Send(node=${represent(value.node)}, arg=${represent(value.args)})`;
  if (typeof value !== "object") return String(value);
  const fields = Object.entries(value).map(([key, item]) => `${represent(key)}: ${represent(item)}`);
  return `{${fields.join(", ")}}`;
}

/** Whether there is JavaScript for all the code of a case. */
export function isWritten(graphs: readonly GraphDescription[]): boolean {
  return graphs.every((graph) => {
    const handlers = Object.values(graph.node_options ?? {}).map((options) => options.error_handler);
    const paths = (graph.conditional_edges ?? []).map(({ path }) => path);
    const code = [...Object.values(graph.nodes), ...paths, ...handlers, graph.node_defaults?.error_handler];
    return code.every((one) => one === undefined || one.startsWith("<subgraph ") || one in BODIES);
  });
}

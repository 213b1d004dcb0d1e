/** The arguments of `compile`. */
import { isMemorySaver } from "../checkpoint/index.js";
import { refuseGraph } from "../declare/index.js";
import type { Security } from "../transport/index.js";
import type { BaseStore, Drift } from "../values/index.js";

export type CompileOptions = {
  /** Keeps the threads of the graph; `true` or `false` say how a subgraph keeps its state. */
  checkpointer?: unknown;
  interruptBefore?: readonly string[] | "*";
  interruptAfter?: readonly string[] | "*";
  /** Name of the graph in the server: threads belong to it. */
  name?: string;
  /**
   * The nodes are part of this graph, which the server has: from a graph file, or from a program in another
   * language. Its edges and breakpoints are declared there. Other workers may have its other nodes.
   */
  partOf?: string;
  description?: string;
  store?: BaseStore;
  cache?: unknown;
  /** Where the server is, like `"localhost:7700"`. */
  server?: string;
  /** How the server is called. */
  security?: Security;
  /** Whether this process runs the nodes: true. */
  worker?: boolean;
  /** Version of the graph; left out, it is derived from its content. */
  version?: string;
  /** What happens when a node asks something else on its replay, for questions that say nothing themselves. */
  drift?: Drift;
  driftIgnore?: readonly string[];
};

/** Breakpoints as the server takes them. */
export function nodeNames(given: readonly string[] | "*" | undefined): readonly string[] {
  return given === "*" ? ["*"] : (given ?? []);
}

/** Throws for what only a whole graph has. */
export function checkPart({ partOf, ...options }: CompileOptions): void {
  const { name, interruptBefore, interruptAfter, drift, driftIgnore } = options;
  const given = { name, interruptBefore, interruptAfter, drift, driftIgnore };
  if (partOf === undefined) return;
  if (partOf === "") throw refuseGraph("partOf is empty: want the name of a graph of the server");
  for (const [option, value] of Object.entries(given)) {
    if (value !== undefined)
      throw refuseGraph(
        `${option} is for the server's graph "${partOf}" to declare: leave it out beside partOf`,
      );
  }
}

/** Throws for what keeps no threads in graphd. */
export function checkSaver(saver: unknown): void {
  if (saver === undefined || saver === null || typeof saver === "boolean" || isMemorySaver(saver)) return;
  const name = typeof saver === "object" ? saver.constructor.name : typeof saver;
  throw new TypeError(
    `checkpointer: ${name} can't keep threads here, the server does: compile({ server: "host:port" }), or ` +
      "compile({ checkpointer: new MemorySaver() }) with the MemorySaver of graphd for a local one",
  );
}

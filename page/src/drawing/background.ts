// Layouts that do not hold the page up.

import type { GraphSpec } from "../api/messages";
import type { Drawing } from "./layout";

/** A graph, and those of its nodes that are open. */
export interface OpenGraph {
  spec: GraphSpec;
  /** The graphs of nodes, by the names of the nodes. */
  inner: ReadonlyMap<string, OpenGraph>;
}

/** What the worker answers: a drawing, or why there is none. */
export type Answer = { drawing: Drawing } | { problem: string };

const longest = 10_000;

/** Returns where the nodes and edges of a graph are drawn. Fails for a graph that is too large, and when it takes too long. */
export function layoutInBackground(graph: OpenGraph, signal: AbortSignal): Promise<Drawing> {
  return new Promise((resolve, reject) => {
    const worker = new Worker("/assets/layout.js");
    const end = (): void => {
      clearTimeout(timer);
      worker.terminate();
    };
    const fail = (why: string): void => {
      end();
      reject(new Error(why + ": graphd graph draw writes it as Mermaid."));
    };
    const timer = setTimeout(() => fail(`The drawing of the graph takes longer than ${longest / 1000} s`), longest);
    signal.addEventListener("abort", end);
    worker.onmessage = ({ data: answer }: MessageEvent<Answer>) => {
      if ("problem" in answer) return fail(answer.problem);
      end();
      resolve(answer.drawing);
    };
    worker.onerror = () => fail("The graph can’t be drawn here");
    worker.postMessage(graph);
  });
}

/** Names of graphs that were given none. */
import { createHash } from "node:crypto";
import type { GraphBuilder } from "../declare/index.js";

const known = new Map<string, WeakRef<GraphBuilder>>();

/**
 * A name for a graph without one: the same in every process that builds the same graph, and another one for a
 * second graph that would take it while the first is alive.
 */
export function deriveName(builder: GraphBuilder): string {
  const digest = createHash("sha256");
  for (const { name, action } of Object.values(builder.nodes))
    digest.update(`${name}=${action?.name ?? ""};`);
  for (const { source, name } of builder.branchList) digest.update(`${source}>${name};`);
  const stem = `LangGraph-${digest.digest("hex").slice(0, 10)}`;
  for (let number = 1; ; number++) {
    const name = number === 1 ? stem : `${stem}-${number}`;
    const owner = known.get(name)?.deref();
    if (owner === undefined || owner === builder) {
      known.set(name, new WeakRef(builder));
      return name;
    }
  }
}

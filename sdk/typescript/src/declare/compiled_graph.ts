/** How a subgraph keeps its state. */
export type Persistence = "inherit" | "persist" | "disabled";

/** A compiled graph, as far as the declaration of a graph around it needs it: `programOf` has the rest. */
export interface CompiledGraph {
  readonly lg_is_pregel: true;
  readonly program: object;
  readonly persistence: Persistence;
}

export function isCompiledGraph(value: unknown): value is CompiledGraph {
  return (value as { lg_is_pregel?: unknown } | null | undefined)?.lg_is_pregel === true;
}

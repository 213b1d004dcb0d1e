/** What of a config names a run, its thread and a checkpoint of it. */
export type RunConfig = {
  configurable?: Record<string, any> | undefined;
  metadata?: Record<string, unknown> | undefined;
  tags?: string[] | undefined;
  recursionLimit?: number | undefined;
  runId?: string | undefined;
  context?: unknown;
  durability?: "async" | "sync" | "exit" | undefined;
  signal?: AbortSignal | undefined;
};

/** The parts of `configurable` that name a place in a thread, and do not reach nodes. */
export const PLACE_KEYS = new Set(["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"]);

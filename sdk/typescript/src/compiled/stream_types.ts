/** What TypeScript knows of the chunks of a stream. */
import type { StateSnapshot, StreamMode } from "../client/index.js";

export type { StateSnapshot, StreamMode };

type TaskChunk = {
  id: string;
  name: string;
  interrupts: unknown[];
  input?: unknown;
  triggers?: string[];
  result?: unknown;
  error?: unknown;
};

/** What nodes have written, by their names. */
type Updates<U, N, Results> =
  Results extends Record<string, unknown>
    ? { [K in keyof Results]?: Results[K] }
    : Record<N extends "__start__" ? never : N extends string ? N : string, U>;

/** The chunks of a mode. */
type ChunkOf<M, U, V, N, Results, Custom> = M extends "values"
  ? V
  : M extends "updates"
    ? Updates<U, N, Results>
    : M extends "messages"
      ? [message: any, metadata: Record<string, any>]
      : M extends "tasks"
        ? TaskChunk
        : M extends "checkpoints"
          ? StateSnapshot
          : M extends "custom"
            ? Custom
            : any;

type Many<M extends StreamMode, Sub, U, V, N, Results, Custom> = M extends StreamMode
  ? Sub extends true
    ? [string[], M, ChunkOf<M, U, V, N, Results, Custom>]
    : [M, ChunkOf<M, U, V, N, Results, Custom>]
  : never;
type Single<M, Sub, U, V, N, Results, Custom> = Sub extends true
  ? [string[], ChunkOf<M, U, V, N, Results, Custom>]
  : ChunkOf<M, U, V, N, Results, Custom>;

/**
 * The chunks of a stream, by its modes and by whether it shows subgraphs. `U` is what nodes write, `V` what the state
 * shows, `N` the names of the nodes, `Results` what they return, and `Custom` what they send.
 */
export type StreamOutputMap<
  M,
  Sub,
  U,
  V,
  N = string,
  Results = unknown,
  Custom = any,
  E = undefined,
> = E extends "text/event-stream"
  ? Uint8Array
  : M extends readonly StreamMode[]
    ? Many<M[number], Sub, U, V, N, Results, Custom>
    : Single<M extends StreamMode ? M : "updates", Sub, U, V, N, Results, Custom>;

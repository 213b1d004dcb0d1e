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

/** The chunks of a mode. `O` is what the state shows, `U` what nodes write, `N` their names. */
type ChunkOf<M, O, U, N extends string> = M extends "values"
  ? O
  : M extends "updates"
    ? Record<N extends "__start__" ? never : N, U>
    : M extends "messages"
      ? [message: any, metadata: Record<string, any>]
      : M extends "tasks"
        ? TaskChunk
        : M extends "checkpoints"
          ? StateSnapshot
          : any;

type Many<M extends StreamMode, Sub, O, U, N extends string> = M extends StreamMode
  ? Sub extends true
    ? [string[], M, ChunkOf<M, O, U, N>]
    : [M, ChunkOf<M, O, U, N>]
  : never;

/** The chunks of a stream, by its modes and by whether it shows subgraphs. */
export type StreamOutputMap<
  M,
  Sub,
  O,
  U,
  N extends string = string,
  E = undefined,
> = E extends "text/event-stream"
  ? Uint8Array
  : M extends readonly StreamMode[]
    ? Many<M[number], Sub, O, U, N>
    : M extends StreamMode
      ? Sub extends true
        ? [string[], ChunkOf<M, O, U, N>]
        : ChunkOf<M, O, U, N>
      : Sub extends true
        ? [string[], ChunkOf<"updates", O, U, N>]
        : ChunkOf<"updates", O, U, N>;

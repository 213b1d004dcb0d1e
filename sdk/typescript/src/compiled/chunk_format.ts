/** The chunks of streams, in the forms of LangGraph.js. */
import type { StreamItem } from "../client/index.js";
import { encode } from "../codec/index.js";
import { NAMESPACE_SEPARATOR } from "../constants.js";

export type ChunkFormat = {
  /** One mode was asked for, not a list. */
  isSingle: boolean;
  subgraphs: boolean;
};

/** The data alone, or with its mode and its namespace before it. */
export function formatChunk(
  { mode, levels, data }: StreamItem,
  { isSingle, subgraphs }: ChunkFormat,
): unknown {
  const parts = [...(subgraphs ? [[...levels]] : []), ...(isSingle ? [] : [mode]), data];
  return parts.length === 1 ? data : parts;
}

/** A chunk as a server-sent event. */
export function formatServerSentEvent({ mode, levels, data }: StreamItem, subgraphs: boolean): Uint8Array {
  const event = [mode, ...(subgraphs ? levels : [])].join(NAMESPACE_SEPARATOR);
  return new TextEncoder().encode(`event: ${event}\ndata: ${encode(data ?? null)}\n\n`);
}

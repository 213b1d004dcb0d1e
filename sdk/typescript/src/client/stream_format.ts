import type { StreamItem, StreamMode } from "./stream_modes.js";

export type StreamFormat = {
  /** Whether modes were given as a list: chunks then name theirs. */
  several: boolean;
  /** Whether chunks say in which graph they happened. */
  subgraphs: boolean;
};

/** How chunks look: it depends on how their modes were asked for. */
export function readStreamFormat(
  given: StreamMode | readonly StreamMode[],
  subgraphs: boolean,
): StreamFormat {
  return { several: typeof given !== "string", subgraphs };
}

/** The chunk of an item, as LangGraph.js shows it. */
export function formatChunk(
  { levels, mode, data }: StreamItem,
  { several, subgraphs }: StreamFormat,
): unknown {
  if (subgraphs) return several ? [levels, mode, data] : [levels, data];
  return several ? [mode, data] : data;
}

/** The text of an item as an event of a stream of server-sent events. */
export function formatServerSentEvent(
  { levels, mode, data }: StreamItem,
  { subgraphs }: StreamFormat,
): string {
  const event = subgraphs && levels.length > 0 ? [mode, ...levels].join("|") : mode;
  const text = JSON.stringify(data, (_key, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return `event: ${event}\ndata: ${text}\n\n`;
}

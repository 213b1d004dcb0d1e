import type { Caller } from "../calls/index.js";
import { errorOfRun } from "../calls/index.js";
import { formatCursor, parseCursor } from "./cursor.js";
import { followEvents } from "./event_stream.js";
import { UNKNOWN_GRAPH } from "./graph_shape.js";
import { restoreOmittedValues } from "./omitted_values.js";
import { filterOf, readStreamModes, type StreamItem, type StreamMode } from "./stream_modes.js";
import { Translator } from "./translator.js";

export type FollowRunOptions = {
  streamMode?: StreamMode | readonly StreamMode[] | undefined;
  subgraphs?: boolean | undefined;
  /** The cursor of an item: what came after it is shown. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** An item of a stream, and where it is in the log of its thread. */
export type FollowedItem = StreamItem & { cursor: string };

/** Yields what happens in a run that is there; throws what it has failed with. */
export async function* followRun(
  caller: Caller,
  threadId: string,
  runId: string,
  options: FollowRunOptions,
): AsyncGenerator<FollowedItem, void, undefined> {
  const { streamMode = "updates", subgraphs = false, after, signal } = options;
  const modes = readStreamModes(streamMode);
  const config = { configurable: { thread_id: threadId } };
  const translator = new Translator({ modes, shape: UNKNOWN_GRAPH, config, subgraphs, stored: true });
  const filter = filterOf(modes, { subgraphs, someKeys: false });
  const start = after === undefined ? undefined : { case: "after" as const, value: parseCursor(after) };
  const watch = { threadId, runId, filter, follow: true, ...(start === undefined ? {} : { start }) };
  let cursor = after ?? "";
  const place = (item: StreamItem): FollowedItem => ({ ...item, cursor });
  for await (const event of followEvents(caller, { watch }, { signal })) {
    if (event.valueOmitted) await restoreOmittedValues(caller, event);
    if (event.cursor !== undefined) cursor = formatCursor(event.cursor);
    yield* translator.translate(event).map(place);
    if (event.kind.case !== "end") continue;
    yield* translator.heldItems().map(place);
    const { run } = event.kind.value;
    const error = run === undefined ? undefined : errorOfRun(run);
    if (error !== undefined) throw error;
  }
}

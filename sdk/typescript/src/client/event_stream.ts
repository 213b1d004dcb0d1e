/**
 * The events of a run, over all its streams. A run belongs to the store, not to a connection: a stream that
 * breaks, or whose server leaves, is continued by Watch after the last event that was seen.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { EndOfStream_Cause, type Event, type EventFilterSchema } from "../_gen/graphd/v1/event_pb.js";
import {
  GraphService,
  type ResumeRequest,
  type StreamRequest,
  type WatchRequestSchema,
} from "../_gen/graphd/v1/graph_service_pb.js";
import type { Cursor } from "../_gen/graphd/v1/payload_pb.js";
import { Backoff, type Caller, type CallOptions, pauseAfter, sleep } from "../calls/index.js";
import { type GraphdError, isGraphdError, ServerUnavailableError } from "../errors/index.js";

/** What to follow: a run that is started or gone on with, or one that is there. */
export type EventRequest =
  | { start: StreamRequest }
  | { resume: ResumeRequest }
  | { watch: MessageInitShape<typeof WatchRequestSchema> };

type WatchPlace = {
  threadId: string | undefined;
  runId: string | undefined;
  filter: MessageInitShape<typeof EventFilterSchema> | undefined;
  follow: boolean | undefined;
};

/**
 * Yields events until there are no more. Each comes once, whatever happens to connections: a request that starts
 * something needs a `requestId`. Leaving the iteration leaves the run as it is.
 */
export async function* followEvents(
  caller: Caller,
  request: EventRequest,
  options: CallOptions = {},
): AsyncGenerator<Event, void, undefined> {
  const position = new Position(request);
  const backoff = new Backoff();
  for (;;) {
    let problem: GraphdError | undefined;
    try {
      for await (const event of position.open(caller, options)) {
        if (event.kind.case !== "opened") backoff.reset();
        if (position.record(event)) yield event;
        if (event.kind.case === "end" && !continuesElsewhere(event)) return;
      }
      problem = leftByServer();
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      problem = error;
    }
    await sleep(pauseAfter(caller, problem, backoff, options), options.signal);
  }
}

function leftByServer(): GraphdError {
  return new ServerUnavailableError("the server has left and none has taken its place", {
    reason: "SERVER_DRAINING",
    code: "UNAVAILABLE",
  });
}

/** Whether a stream ends though there is more to come, on another one. */
function continuesElsewhere(event: Event): boolean {
  if (event.kind.case !== "end") return false;
  const { cause } = event.kind.value;
  return cause === EndOfStream_Cause.DRAINING || cause === EndOfStream_Cause.SLOW_CONSUMER;
}

/** How far the streams of a request have come. */
class Position {
  private rest: WatchPlace | undefined;
  private cursor: Cursor | undefined;

  constructor(private readonly request: EventRequest) {}

  /** The next stream. */
  open(caller: Caller, options: CallOptions): AsyncIterable<Event> {
    if (this.rest !== undefined && this.cursor !== undefined) {
      const request = { ...this.rest, start: { case: "after" as const, value: this.cursor } };
      return caller.serverStream(GraphService.method.watch, request, options);
    }
    if ("start" in this.request)
      return caller.serverStream(GraphService.method.stream, this.request.start, options);
    if ("resume" in this.request)
      return caller.serverStream(GraphService.method.resume, this.request.resume, options);
    return caller.serverStream(GraphService.method.watch, this.request.watch, options);
  }

  /** Notes an event; false when it is not to be shown. */
  record(event: Event): boolean {
    const { kind } = event;
    if (kind.case === "end") this.cursor = kind.value.resumeAt ?? this.cursor;
    else if (kind.case === "heartbeat") this.cursor = kind.value.scanned ?? this.cursor;
    else if (event.cursor !== undefined) this.cursor = event.cursor;
    if (kind.case !== "opened") return !continuesElsewhere(event);
    if (this.rest !== undefined) return false;
    this.rest = this.continuation(event);
    return true;
  }

  private continuation(opened: Event): WatchPlace {
    if ("watch" in this.request) {
      const { threadId, runId, filter, follow } = this.request.watch;
      return { threadId, runId, filter, follow };
    }
    const { filter } = "start" in this.request ? this.request.start : this.request.resume;
    return { threadId: opened.threadId, runId: opened.runId, filter, follow: true };
  }
}

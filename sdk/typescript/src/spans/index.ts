/** Traces of OpenTelemetry: spans around tasks, and the trace context of calls, where its API is installed. */
import type { Context, SpanContext } from "@opentelemetry/api";

type Api = typeof import("@opentelemetry/api");

let loading: Promise<Api | undefined> | undefined;
let loaded: { api: Api | undefined } | undefined;

function loadApi(): Promise<Api | undefined> {
  loading ??= import("@opentelemetry/api").then(
    (api) => noteApi(api),
    () => noteApi(undefined),
  );
  return loading;
}

function noteApi(api: Api | undefined): Api | undefined {
  loaded = { api };
  return api;
}

/** A W3C trace context, by the names of its headers. */
export type TraceCarrier = Record<string, string>;

/** The trace context of the code that runs; it is empty outside of all spans. A promise for the first call alone. */
export function readTrace(): TraceCarrier | Promise<TraceCarrier> {
  return loaded === undefined ? loadApi().then(carrierOf) : carrierOf(loaded.api);
}

function carrierOf(api: Api | undefined): TraceCarrier {
  const found = api?.trace.getSpanContext(api.context.active());
  if (api === undefined || found === undefined || !api.isSpanContextValid(found)) return {};
  const flags = found.traceFlags.toString(16).padStart(2, "0");
  const state = found.traceState?.serialize();
  return {
    traceparent: `00-${found.traceId}-${found.spanId}-${flags}`,
    ...(state ? { tracestate: state } : {}),
  };
}

/** A task that is traced. */
export type TracedTask = {
  name: string;
  carrier: TraceCarrier;
  attributes: Record<string, string | number>;
};

/**
 * Runs the code of a task in a span inside that of the server. typeOf says with which type of error a result has
 * failed: its text may have values, and is no part of a span.
 */
export async function traceTask<T>(
  { name, carrier, attributes }: TracedTask,
  run: () => Promise<T>,
  typeOf: (result: T) => string | undefined,
): Promise<T> {
  const api = loaded === undefined ? await loadApi() : loaded.api;
  if (api === undefined) return await run();
  const around = contextOf(api, carrier);
  const span = api.trace
    .getTracer("graphd")
    .startSpan(name, { kind: api.SpanKind.CONSUMER, attributes }, around);
  try {
    const result = await api.context.with(api.trace.setSpan(around, span), run);
    const failure = typeOf(result);
    if (failure !== undefined) {
      span.setAttribute("error.type", failure);
      span.setStatus({ code: api.SpanStatusCode.ERROR, message: failure });
    }
    return result;
  } finally {
    span.end();
  }
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/** The context of the caller of a task; that of the running code without one. */
function contextOf(api: Api, { traceparent, tracestate }: TraceCarrier): Context {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  const active = api.context.active();
  if (traceId === undefined || spanId === undefined || flags === undefined) return active;
  const given: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  if (!api.isSpanContextValid(given)) return active;
  if (tracestate) given.traceState = api.createTraceState(tracestate);
  return api.trace.setSpanContext(active, given);
}

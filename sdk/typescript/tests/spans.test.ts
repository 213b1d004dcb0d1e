/** Traces of OpenTelemetry go from a program to the server, and from there to the code of nodes. */
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DevServer, dev } from "../src/dev/index.js";
import { Annotation, END, START, StateGraph } from "../src/index.js";
import { readTrace, traceTask } from "../src/spans/index.js";

const exporter = new InMemorySpanExporter();
let server: DevServer;

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  // Nothing takes the spans of the server there.
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:9";
  server = await dev();
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
});

afterAll(async () => {
  await server?.close();
  trace.disable();
  context.disable();
});

beforeEach(() => exporter.reset());

function named(name: string): ReadableSpan {
  const found = exporter.getFinishedSpans().filter((span) => span.name === name);
  expect(found).toHaveLength(1);
  return found[0] as ReadableSpan;
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CARRIER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, tracestate: "a=b" };

test("a task continues the trace of its assignment", async () => {
  const task = { name: "run count", carrier: CARRIER, attributes: { "graphd.node": "count" } };
  const carrier = await traceTask(
    task,
    async () => await readTrace(),
    () => "RangeError",
  );
  const span = named("run count");
  expect(span.spanContext().traceId).toBe(TRACE);
  expect(span.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
  expect(span.status).toEqual({ code: SpanStatusCode.ERROR, message: "RangeError" });
  expect(carrier).toEqual({
    traceparent: `00-${TRACE}-${span.spanContext().spanId}-01`,
    tracestate: "a=b",
  });
  expect(await readTrace()).toEqual({});
});

test.each(["", "garbage", `00-${"0".repeat(32)}-b7ad6b7169203331-01`])(
  "a task without a trace begins one: %j",
  async (traceparent) => {
    const task = { name: "run count", carrier: { traceparent }, attributes: {} };
    await traceTask(
      task,
      async () => 1,
      () => undefined,
    );
    expect(named("run count").parentSpanContext).toBeUndefined();
  },
);

test("a trace goes through the server", async () => {
  const seen: (string | undefined)[] = [];
  const State = Annotation.Root({ count: Annotation<number>() });
  const graph = new StateGraph(State)
    .addNode("add", async () => {
      seen.push(trace.getActiveSpan()?.spanContext().spanId);
      return { count: 1 };
    })
    .addEdge(START, "add")
    .addEdge("add", END)
    .compile({ server: server.address, name: "spans" });
  const call = trace.getTracer("test").startSpan("call");
  await context.with(trace.setSpan(context.active(), call), async () => {
    expect(await graph.invoke({ count: 0 }, { configurable: { thread_id: "t" } })).toEqual({ count: 1 });
  });
  call.end();
  const node = named("run add");
  expect(seen).toEqual([node.spanContext().spanId]);
  expect(node.spanContext().traceId).toBe(call.spanContext().traceId);
  expect(node.parentSpanContext?.isRemote).toBe(true);
  expect(node.parentSpanContext?.spanId).not.toBe(call.spanContext().spanId);
  expect(node.attributes["graphd.thread"]).toBe("t");
});

/** A worker keeps values of states, so that the server sends each once. */
import { afterEach, expect, test, vi } from "vitest";
import type { TaskAssignment } from "../src/_gen/graphd/v1/worker_task_pb.js";
import { encode, textPayload, toPayload } from "../src/codec/index.js";
import { dev } from "../src/dev/index.js";
import { Annotation, END, Send, START, StateGraph } from "../src/index.js";
import { decodeValue, RepeatedText } from "../src/state/index.js";
import { KeptValues, textOf } from "../src/worker/kept_values.js";
import { startRelay } from "./relay.js";
import { startServer } from "./server.js";

const started = startServer();

afterEach(() => {
  vi.restoreAllMocks();
});

const bytes = (text: string) => new TextEncoder().encode(text);
const digests = (given: Record<string, string>) =>
  Object.fromEntries(Object.entries(given).map(([channel, digest]) => [channel, bytes(digest)]));

function assignment(
  channels: Record<string, unknown>,
  kept?: { keep?: Record<string, string>; use?: Record<string, string>; forget?: string[] },
): TaskAssignment {
  return {
    channels: Object.fromEntries(Object.entries(channels).map(([name, value]) => [name, toPayload(value)])),
    kept: kept && {
      keep: digests(kept.keep ?? {}),
      use: digests(kept.use ?? {}),
      forget: (kept.forget ?? []).map(bytes),
    },
  } as unknown as TaskAssignment;
}

const valuesOf = ({ channels }: TaskAssignment) =>
  Object.fromEntries(
    Object.entries(channels).map(([name, value]) => [name, decodeValue(textOf(value) ?? "")]),
  );

test("the server says what is kept", () => {
  const values = new KeptValues();
  expect(values.complete(assignment({ a: 1 }))).toEqual([]);
  expect(values.complete(assignment({ a: [1], b: 2 }, { keep: { a: "one", c: "nothing" } }))).toEqual([]);
  const second = assignment({ b: 3 }, { use: { a: "one", c: "one" } });
  expect(values.complete(second)).toEqual([]);
  expect(valuesOf(second)).toEqual({ a: [1], b: 3, c: [1] });
  expect(values.complete(assignment({}, { use: { a: "one", b: "nothing" } }))).toEqual([bytes("nothing")]);

  const last = assignment({}, { use: { a: "one" }, forget: ["one", "none"] });
  expect(values.complete(last)).toEqual([]);
  expect(valuesOf(last), "what is forgotten is there for the task that says so").toEqual({ a: [1] });
  expect(values.complete(assignment({}, { use: { a: "one" } }))).toEqual([bytes("one")]);

  values.complete(assignment({ a: 1 }, { keep: { a: "one" } }));
  values.clear();
  expect(values.complete(assignment({}, { use: { a: "one" } }))).toEqual([bytes("one")]);
});

test.each([
  '{"a":[1,{"b":[]}],"__proto__":{"polluted":1},"constructor":1,"":{"x":null}}',
  '"text"',
  "[[],[[]]]",
  '{"__graphd__":"other","n":1.5}',
])("each task has objects of its own: %s", (text) => {
  const repeated = new RepeatedText(text);
  for (let i = 0; i < 5; i++) {
    const value = decodeValue(repeated) as any;
    expect(JSON.stringify(value)).toBe(text);
    if (Array.isArray(value)) value[0].push("changed");
    else if (typeof value === "object") {
      if (value.a) value.a[1].b.push("changed");
      value.added = 1;
    }
  }
  expect(({} as any).polluted).toBeUndefined();
});

test("integers that a number would round stay what they are, or are refused, each time", () => {
  const repeated = new RepeatedText('{"n":9007199254740993}');
  for (let i = 0; i < 3; i++) {
    expect(decodeValue(repeated, true)).toEqual({ n: 9007199254740993n });
    expect(() => decodeValue(repeated)).toThrow("9007199254740993");
  }
});

test("sends of a kept value are sends", () => {
  const repeated = new RepeatedText(encode([new Send("node", { a: [1] })]));
  for (let i = 0; i < 4; i++) {
    const [send] = decodeValue(repeated) as Send[];
    expect(send).toBeInstanceOf(Send);
    expect(send?.args).toEqual({ a: [1] });
    (send as any).args.a.push(2);
  }
});

test("a payload that is not kept is read as it is", () => {
  expect(textOf(undefined)).toBeUndefined();
  expect(textOf(textPayload("1"))).toBe("1");
});

type Document = { id: number; text: string };
const documents = (mark: string): Document[] =>
  Array.from({ length: 20 }, (_, id) => ({ id, text: mark.repeat(500) }));
const State = Annotation.Root({ documents: Annotation<Document[]>, done: Annotation<string> });
type Code = (state: typeof State.State) => Partial<typeof State.State>;

const counts: Code = (state) => {
  expect(state.documents).toEqual(documents(state.documents[0]?.text[0] ?? ""));
  return { done: (state.done ?? "") + state.documents[0]?.text[0] };
};
/** A node that changes what it was given. */
const spoils: Code = (state) => {
  (state.documents[0] as Document).text = "changed";
  state.documents.push({ id: -1, text: "" });
  return {};
};

function chain(server: string, name: string, nodes: Code[]) {
  const builder = new StateGraph(State) as any;
  const names = nodes.map((_, i) => `n${i}`);
  for (const [i, code] of nodes.entries()) builder.addNode(names[i], code);
  for (const [i, source] of [START, ...names].entries()) builder.addEdge(source, names[i] ?? END);
  return builder.compile({ server, name });
}

/** What the server says of values, task by task. */
function listen(before: (values: KeptValues, task: number) => void = () => {}) {
  const complete = KeptValues.prototype.complete;
  const seen: { keep: number; use: number; forget: number }[] = [];
  vi.spyOn(KeptValues.prototype, "complete").mockImplementation(function (this: KeptValues, given) {
    const { keep = {}, use = {}, forget = [] } = given.kept ?? {};
    before(this, seen.length);
    seen.push({ keep: Object.keys(keep).length, use: Object.keys(use).length, forget: forget.length });
    return complete.call(this, given);
  });
  return seen;
}

const SENT = { keep: 1, use: 0, forget: 0 };
const KEPT = { keep: 0, use: 1, forget: 0 };

test("a value is sent once", async () => {
  const seen = listen();
  const graph = chain(started.server.address, "kept", [counts, spoils, counts, spoils, counts]);
  const given = await graph.invoke({ documents: documents("a") });
  expect(given).toEqual({ documents: documents("a"), done: "aaa" });
  expect(seen).toEqual([SENT, KEPT, KEPT, KEPT, KEPT]);
  await graph.detach();
});

test("a worker that has lost a value gets the task again", async () => {
  const seen = listen((values, task) => {
    if (task === 1) values.clear();
  });
  const graph = chain(started.server.address, "kept-lost", [counts, counts, counts]);
  expect((await graph.invoke({ documents: documents("a") })).done).toBe("aaa");
  expect(seen).toEqual([SENT, KEPT, { keep: 0, use: 0, forget: 0 }, SENT]);
  await graph.detach();
});

test("a new stream begins without values", async () => {
  const relay = await startRelay(started.server.address);
  const seen = listen();
  const cuts = [relay.cut];
  const breaks: Code = () => {
    cuts.pop()?.();
    return {};
  };
  const graph = chain(relay.address, "kept-reconnect", [counts, counts, breaks, counts]);
  // A result that was under way may get the next task of the old stream.
  for (const thread_id of ["kept-reconnect-1", "kept-reconnect-2"]) {
    const config = { configurable: { thread_id } };
    await graph.invoke({ documents: documents("a") }, config);
    expect((await graph.getState(config)).values.done).toBe("aaa");
  }
  expect(seen.slice(0, 3)).toEqual([SENT, KEPT, KEPT]);
  expect(seen.slice(3).filter(({ keep }) => keep > 0)).toHaveLength(1);
  await graph.detach();
  relay.close();
});

test("values make place", async () => {
  const small = await dev({ flags: ["--max-kept-bytes", "15000"] }); // its workers keep one value
  const seen = listen();
  const changes: Code = (state) => ({
    documents: documents(state.documents[0]?.text[0] === "a" ? "b" : "a"),
  });
  const graph = chain(small.address, "kept-one", [counts, changes, counts, changes, counts]);
  expect((await graph.invoke({ documents: documents("a") })).done).toBe("aba");
  expect(seen.map(({ forget }) => forget)).toEqual([0, 0, 1, 0, 1]);
  await graph.detach();
  await small.close();
});

import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import {
  decode,
  encode,
  fromPayload,
  restoreTagged,
  toPayload,
  UnsafeNumberError,
  UnstorableValueError,
} from "../src/codec/index.js";

function problemOf(value: unknown): string {
  try {
    return `no problem: ${encode(value)}`;
  } catch (error) {
    if (error instanceof UnstorableValueError) return error.message;
    throw error;
  }
}

describe("values that JSON has", () => {
  test.each([
    ["text", 'a "b" \u2028 \u{1F600}'],
    ["an empty key", { "": 1 }],
    ["lists in lists", [[], [[1]], {}]],
    ["numbers", [0, -1.5, 1e21, 1e-7, Number.MAX_SAFE_INTEGER]],
    ["null", null],
    ["a key that is special to objects", JSON.parse('{"__proto__": 1}')],
  ])("%s", (_name, value) => {
    expect(encode(value)).toBe(JSON.stringify(value));
    expect(decode(encode(value))).toEqual(value);
  });

  test("undefined is left out of objects, and null in lists", () => {
    expect(encode({ a: undefined, b: [undefined, 1] })).toBe('{"b":[null,1]}');
    expect(problemOf(undefined)).toMatch(/undefined/);
  });

  test("minus zero is zero", () => expect(encode(-0)).toBe("0"));

  test("a Date is its ISO text, and toJSON is obeyed", () => {
    const point = new (class Point {
      x = 1;
    })();
    expect(encode({ at: new Date(0), url: new URL("https://a.example/"), point })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","url":"https://a.example/","point":{"x":1}}',
    );
  });
});

describe("values that would be lost", () => {
  test.each([
    ["NaN", Number.NaN, /NaN has no JSON form/],
    ["a function", () => 1, /a function has no JSON form/],
    ["a symbol", Symbol("x"), /a symbol has no JSON form/],
    ["a Map", new Map(), /a Map .*Object\.fromEntries/],
    ["a Set", new Set(), /a Set .*\[\.\.\.set\]/],
    ["bytes", new Uint8Array(2), /a Uint8Array .*base64/],
    ["a Buffer, though it has toJSON", Buffer.from("x"), /a Buffer .*base64/],
    ["a RegExp", /x/, /a RegExp/],
    ["an Error", new TypeError("x"), /an TypeError/],
    ["a Promise", Promise.resolve(1), /await it/],
    ["a generator", (function* () {})(), /a stream has no JSON form: read it/],
    ["an async generator", (async function* () {})(), /a stream/],
    ["a stream of the web", new ReadableStream(), /a stream/],
    ["an invalid Date", new Date(Number.NaN), /invalid Date/],
    ["half a surrogate pair", "\ud800", /surrogate/],
    ["a key with half a surrogate pair", { "\ud800": 1 }, /surrogate/],
  ])("%s", (_name, value, problem) => {
    expect(problemOf({ orders: [{ "the value": value }] })).toMatch(/^orders\[0\]/);
    expect(problemOf(value)).toMatch(problem);
  });

  test("the error says where", () => {
    expect(problemOf({ orders: [{ "the total": Number.NaN }] })).toBe(
      'orders[0]["the total"]: NaN has no JSON form: write null or a text',
    );
  });

  test("what contains itself", () => {
    const loop: Record<string, unknown> = {};
    loop.again = loop;
    expect(problemOf({ loop })).toMatch(/^loop\.again.*contains itself/);
  });

  test("as many levels as a server takes", () => {
    const nest = (levels: number): unknown => (levels === 0 ? 1 : [nest(levels - 1)]);
    expect(problemOf(nest(128))).toMatch(/^no problem/);
    expect(problemOf(nest(129))).toMatch(/128 levels/);
  });

  test("containers that a schema brings back", () => {
    const value = { map: new Map([["a", 1]]), set: new Set([1]), bytes: new Uint8Array([255, 0]) };
    expect(encode(value, { containers: true })).toBe('{"map":[["a",1]],"set":[1],"bytes":"/wA="}');
  });
});

describe("large integers", () => {
  const text =
    '{"id":9007199254740993,"note":"9007199254740993 \\" 1","n":[-12345678901234567890,1.5,0.1234567890123456]}';

  test("are not rounded in silence", () => {
    expect(() => decode(text)).toThrow(UnsafeNumberError);
    expect(() => decode(text)).toThrow("id: 9007199254740993 is beyond");
    expect(() => decode("9007199254740993")).toThrow("the value: 9007199254740993");
  });

  test("are bigints where that is asked for", () => {
    const value = decode(text, { unsafe: "bigint" });
    expect(value).toEqual({
      id: 9007199254740993n,
      note: '9007199254740993 " 1',
      n: [-12345678901234567890n, 1.5, 0.1234567890123456],
    });
    expect(encode(value)).toBe(text);
  });

  test("a text that looks like what marks them", () => {
    const tricky = '{"a":"integer:5","b":1234567890123456789012}';
    expect(decode(tricky, { unsafe: "bigint" })).toEqual({ a: "integer:5", b: 1234567890123456789012n });
  });

  test("numbers with many digits that are safe stay numbers", () => {
    expect(decode('{"a":"1234567890123456","b":9007199254740991,"c":1e300}')).toEqual({
      a: "1234567890123456",
      b: 9007199254740991,
      c: 1e300,
    });
  });

  test("a number that would be infinite", () => expect(() => decode("[1e400]")).toThrow(UnsafeNumberError));
});

describe("messages and commands", () => {
  test("messages are stored as their fields", () => {
    const call = { name: "add", args: { a: 1 }, id: "c1", type: "tool_call" as const };
    expect(
      JSON.parse(
        encode([
          new HumanMessage({ content: "hi", id: "1" }),
          new AIMessage({ content: "", tool_calls: [call] }),
        ]),
      ),
    ).toEqual([
      { type: "human", content: "hi", id: "1" },
      { type: "ai", content: "", tool_calls: [call] },
    ]);
    expect(JSON.parse(encode(new ToolMessage({ content: "3", tool_call_id: "c1" })))).toMatchObject({
      type: "tool",
      content: "3",
      tool_call_id: "c1",
    });
    expect(JSON.parse(encode(new AIMessageChunk("a")))).toMatchObject({
      type: "AIMessageChunk",
      content: "a",
    });
  });

  test("commands and sends keep what they are", () => {
    class Send {
      lg_name = "Send";
      constructor(
        readonly node: string,
        readonly args: unknown,
      ) {}
    }
    const text = encode({ to: [new Send("a", { n: 1 })] });
    expect(text).toBe('{"to":[{"__graphd__":"send","node":"a","arg":{"n":1}}]}');
    const restored = restoreTagged(decode(text), (kind, fields) =>
      kind === "send" ? new Send(fields.node as string, fields.arg) : undefined,
    );
    expect(restored).toEqual({ to: [new Send("a", { n: 1 })] });
    expect(
      encode(Object.assign(new (class Command {})(), { lg_name: "Command", goto: [], resume: null })),
    ).toBe('{"__graphd__":"command","resume":null}');
  });
});

test("an unset payload is no value, which differs from null", () => {
  expect(fromPayload(undefined)).toBeUndefined();
  expect(fromPayload({ ...toPayload(1), body: { case: undefined } })).toBeUndefined();
  expect(fromPayload(toPayload(null))).toBeNull();
});

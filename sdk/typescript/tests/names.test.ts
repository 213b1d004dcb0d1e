import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  findLevels,
  formatNamespace,
  handlerName,
  parseNamespace,
  publicName,
  publicThread,
  sha256,
  wireName,
  wireThread,
} from "../src/names/index.js";

describe("thread ids", () => {
  test.each(["a", "a:b", "user.1_-x"])("%s is as it is", (id) => expect(wireThread(id)).toBe(id));

  test.each(["a b", "übung", "", "::a", "a/b@c", "\ufeffx", "::%61"])(
    "%j is escaped, and comes back",
    (id) => {
      expect(wireThread(id)).toMatch(/^::[A-Za-z0-9_.:-]*$/);
      expect(publicThread(wireThread(id))).toBe(id);
    },
  );

  test("other types are their texts, and a long id is its digest", () => {
    expect(wireThread(7)).toBe("7");
    expect(wireThread("ü".repeat(60))).toBe(
      `::::${createHash("sha256").update("ü".repeat(60)).digest("hex")}`,
    );
    expect(wireThread("a b", "p.")).toBe("p.::a:20b");
  });
});

test.each([0, 3, 55, 56, 64, 1000])("SHA-256 of %i bytes", (length) => {
  const bytes = Uint8Array.from({ length }, (_, at) => (at * 7) % 256);
  expect(sha256(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
});

describe("nodes and namespaces", () => {
  test("error handlers", () => {
    expect(wireName(handlerName("a"))).toBe("error handler of a");
    expect(publicName("error handler of a")).toBe(handlerName("a"));
    expect(publicName(wireName("__default_error_handler__"))).toBe("__default_error_handler__");
  });

  test("levels", () => {
    expect(parseNamespace(`${handlerName("a")}:t1|b`)).toEqual(["error handler of a:t1", "b"]);
    expect(formatNamespace(["error handler of a:t1", "b"])).toBe(`${handlerName("a")}:t1|b`);
    expect(parseNamespace("")).toEqual([]);
    expect(findLevels(["a"], [[], ["a:1"], ["a:2"]])).toEqual(["a:2"]);
    expect(findLevels(["a:1"], [["a:2"]])).toEqual(["a:1"]);
    expect(findLevels(["a"], [["a:1"], ["a"]])).toEqual(["a"]);
  });
});

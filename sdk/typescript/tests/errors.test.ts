import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  AmbiguousResumeError,
  createGraphdError,
  GraphdError,
  GraphInterrupt,
  isGraphBubbleUp,
  isGraphdError,
  isGraphInterrupt,
  knownReasons,
  NodeInterrupt,
  NothingToResumeError,
  ServerUnavailableError,
  UnknownInterruptError,
} from "../src/errors/index.js";

/** Reasons that only the address for browsers has: docs/http.md. */
const OF_HTTP = ["ORIGIN_REFUSED", "METHOD_NOT_FOUND"];

function readErrorTable(): string[] {
  const page = readFileSync(new URL("../../../docs/protocol.md", import.meta.url), "utf8");
  const section = page.split("\n## Errors\n")[1]?.split("\n### ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows
    .flatMap((row) => (row.split("|")[2] ?? "").match(/`[A-Z_]+`/g) ?? [])
    .map((one) => one.slice(1, -1));
}

describe("errors by reason", () => {
  test("every reason of the server's table has a class", () => {
    const table = readErrorTable();
    expect(table.length).toBeGreaterThan(70);
    expect(knownReasons().sort()).toEqual([...new Set([...table, ...OF_HTTP])].sort());
  });

  test("an answer that nothing waits for", () => {
    const error = createGraphdError("nothing waits", {
      reason: "THREAD_NOT_INTERRUPTED",
      code: "FAILED_PRECONDITION",
    });
    expect(error).toBeInstanceOf(NothingToResumeError);
    expect(error).toBeInstanceOf(UnknownInterruptError);
    expect(error).toBeInstanceOf(GraphdError);
    expect(error).toMatchObject({
      name: "NothingToResumeError",
      reason: "not_pending",
      serverReason: "THREAD_NOT_INTERRUPTED",
    });
    expect(isGraphdError(error, "THREAD_NOT_INTERRUPTED")).toBe(true);
    expect(isGraphdError(error, "ambiguous")).toBe(false);
  });

  test("an answer that fits several questions names them", () => {
    const error = createGraphdError("which one?", {
      reason: "RESPONSE_AMBIGUOUS",
      metadata: { openInterruptIds: "b,a" },
    });
    expect(error).toBeInstanceOf(AmbiguousResumeError);
    expect(error).toMatchObject({ reason: "ambiguous", pendingIds: ["a", "b"], interruptIds: [] });
  });

  test("the code of gRPC counts when there is no known reason", () => {
    expect(createGraphdError("away", { code: "UNAVAILABLE" })).toBeInstanceOf(ServerUnavailableError);
    expect(createGraphdError("new", { code: "ABORTED", reason: "OF_A_NEWER_SERVER" }).name).toBe(
      "GraphdError",
    );
  });
});

describe("what leaves a node", () => {
  test("is known by its name, also from another copy of the package", () => {
    const foreign = Object.assign(new Error("[]"), { name: "GraphInterrupt", is_bubble_up: true });
    expect(isGraphInterrupt(foreign)).toBe(true);
    expect(isGraphBubbleUp(foreign)).toBe(true);
    expect(isGraphInterrupt(new NodeInterrupt("why?"))).toBe(true);
    expect(new NodeInterrupt("why?").interrupts).toEqual([{ value: "why?" }]);
    expect(isGraphInterrupt(new Error("no"))).toBe(false);
    expect(isGraphBubbleUp(new GraphInterrupt())).toBe(true);
    expect(isGraphBubbleUp(undefined)).toBe(false);
  });
});

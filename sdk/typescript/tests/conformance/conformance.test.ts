/** The cases of the Python SDK, played by nodes in JavaScript: both SDKs show the same of one server. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import differences from "./differences.json" with { type: "json" };
import { type Case, isPlayable, Player } from "./player.js";
import { isWritten } from "./program.js";

const folder = new URL("../../../python/tests/conformance/cases/", import.meta.url);
const cases = readdirSync(folder)
  .sort()
  .flatMap((file) => JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Case[])
  .filter((one) => isWritten(one.graphs) && isPlayable(one));
const DIFFERENCES = differences as Record<string, string>;

describe("conformance", () => {
  test("the cases are found, and every difference has a case", () => {
    expect(cases.length).toBeGreaterThan(190);
    const ids = new Set(cases.map(({ id }) => id));
    expect(Object.keys(DIFFERENCES).filter((id) => !ids.has(id))).toEqual([]);
  });

  test.concurrent.each(cases)("$id $title", async (one) => {
    const playing = new Player(one).play();
    // What differs for a reason must go on to differ, or the reason is gone.
    if (one.id in DIFFERENCES) await expect(playing).rejects.toThrow(one.id);
    else await playing;
  });
});

/** Random graphs, as LangGraph plays them: `make oracle-ts` writes the cases. */
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Case, Player } from "../tests/conformance/player.js";
import type { Bodies } from "../tests/conformance/program.js";

type Recorded = Case & { bodies: Bodies };

const file = process.env.ORACLE_CASES ?? "";
const cases = JSON.parse(readFileSync(file, "utf8")) as Recorded[];
/** Cases at a time: nodes of Python's recordings sleep, too. */
const AT_A_TIME = 8;
/** Milliseconds after which a case counts as one that hangs, on the busiest machine. */
const PATIENCE = 120_000;

test("graphd plays random graphs as LangGraph does", { timeout: 3_600_000 }, async () => {
  const different = new Map<string, string>();
  const queue = [...cases];
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
        const problem = await findDifference(one);
        if (problem !== undefined) different.set(one.id, problem);
      }
    }),
  );
  for (const [id, problem] of different) console.log(`--- ${id}\n${problem}`);
  console.log(`${cases.length} cases, ${different.size} differ ${[...different.keys()].join(" ")}`);
  writeFileSync(`${file}.different`, [...different.keys()].join("\n"));
  expect(cases.length).toBeGreaterThan(0);
  expect([...different.keys()]).toEqual([]);
});

async function findDifference(one: Recorded): Promise<string | undefined> {
  try {
    const hang = setTimeout(PATIENCE, undefined, { ref: false }).then(() => {
      throw new Error("it hangs");
    });
    await Promise.race([new Player(one, one.bodies).play(), hang]);
  } catch (error) {
    return `${JSON.stringify(one.graphs)}\n${(error as Error).message}`;
  }
  return undefined;
}

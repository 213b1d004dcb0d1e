/** The TypeScript programs of examples/ print what their files say. */
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { expect, test, vi } from "vitest";

test.each(["mini-runner-ts", "node-interrupt-ts"])("%s", async (name) => {
  const folder = new URL(`../../../examples/${name}/`, import.meta.url).pathname;
  const lines: string[] = [];
  const log = vi
    .spyOn(console, "log")
    .mockImplementation((...parts) => void lines.push(parts.map(show).join(" ")));
  await import(/* @vite-ignore */ `${folder}main.ts`);
  log.mockRestore();
  expect(`${lines.join("\n")}\n`).toBe(readFileSync(`${folder}expected.txt`, "utf8"));
});

function show(part: unknown): string {
  return typeof part === "string" ? part : inspect(part);
}

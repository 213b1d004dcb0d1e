/** The programs of docs/typescript.md are run: the blocks of a section are one program. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startServer } from "./server.js";

const started = startServer();
const folder = fileURLToPath(new URL("./.page/", import.meta.url));

beforeAll(() => mkdirSync(folder, { recursive: true }));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** The code of a section, in the order of its blocks. */
function readProgram(section: string): string {
  const page = readFileSync(new URL("../../../docs/typescript.md", import.meta.url), "utf8");
  const text = page.split(`\n## ${section}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code).join("\n");
}

test("clients", async () => {
  vi.stubEnv("GRAPHD_SERVER", started.server.address);
  const said: unknown[][] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...parts) => void said.push(parts));
  writeFileSync(`${folder}clients.ts`, readProgram("Clients"));
  await import(/* @vite-ignore */ `${folder}clients.ts`);
  log.mockRestore();
  expect(said[0]).toEqual(["10 EUR"]);
  expect(said[1]).toEqual([["reviewed 10 EUR"]]);
  expect(said).toContainEqual([{ __interrupt__: [expect.objectContaining({ value: "20 EUR" })] }]);
  expect(said).toContainEqual([expect.any(String), "updates", { __interrupt__: [expect.anything()] }]);
  expect(said.at(-1)).toEqual(["succeeded"]);
});

test("tools", async () => {
  writeFileSync(`${folder}tools.ts`, `${readProgram("Tools")}\nexport { tools };\n`);
  const { tools } = await import(/* @vite-ignore */ `${folder}tools.ts`);
  const message = { type: "ai", content: "", tool_calls: [{ name: "pay", args: { amount: 3 }, id: "1" }] };
  // It asks, which only the node of a graph can do.
  expect(await tools.invoke([message])).toMatchObject([
    { status: "error", content: expect.stringMatching(/inside of a node/) },
  ]);
});

test("graphs", async () => {
  vi.unstubAllEnvs();
  const said: unknown[][] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...parts) => void said.push(parts));
  writeFileSync(`${folder}graphs.ts`, readProgram("Port a program") + readProgram("Questions and memos"));
  await import(/* @vite-ignore */ `${folder}graphs.ts`);
  log.mockRestore();
  expect(said[0]).toMatchObject([{ log: ["checked 10"], __interrupt__: [{ value: { approve: 10 } }] }]);
  expect(said[1]).toEqual([{ amount: 10, log: ["checked 10", "approved"] }]);
  expect(said[2]).toEqual([{ done: ["charge 1 with 32 digits", "legal? yes", "finance? yes"] }]);
});

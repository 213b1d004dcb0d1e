/** Graphs whose server knows its callers. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callerOf } from "../src/compiled/servers.js";
import { dev, findProgram } from "../src/dev/index.js";
import { Annotation, START, StateGraph } from "../src/index.js";
import { createClient } from "../src/node.js";

test("a graph calls its server with its own token, over one connection", async () => {
  const folder = mkdtempSync(join(tmpdir(), "graphd-secured-"));
  const keys = join(folder, "keys.yaml");
  const args = ["keys", "create", "--file", keys, "--role", "admin", "--name", "ann"];
  const token = execFileSync(findProgram(), args, { stdio: ["ignore", "pipe", "ignore"] })
    .toString()
    .trim();
  const server = await dev({ flags: ["--api-keys", keys] });
  const security = { token };
  const graph = new StateGraph(Annotation.Root({ n: Annotation<number> }))
    .addNode("add", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "add")
    .compile({ server: server.address, name: "secured", security });
  expect(await graph.invoke({ n: 1 })).toEqual({ n: 2 });
  expect(callerOf(server.address, security)).toBe(callerOf(server.address, security));
  const client = createClient(server.address, { security });
  const threads: string[] = [];
  for await (const { threadId } of client.listThreads()) threads.push(threadId);
  expect(threads).toEqual([]); // the thread of a call that names none is deleted
  client.close();
  await graph.detach();
  await server.close();
  rmSync(folder, { recursive: true });
});

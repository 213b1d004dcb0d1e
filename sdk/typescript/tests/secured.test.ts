/** Graphs whose server knows its callers. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { callerOf } from "../src/compiled/servers.js";
import { dev, findProgram } from "../src/dev/index.js";
import { EmptyInputError, NotFoundError } from "../src/errors/index.js";
import { Annotation, START, StateGraph } from "../src/index.js";
import { createClient } from "../src/node.js";
import { Command } from "../src/values/index.js";
import { REFUND } from "./graph_documents.js";

const folder = mkdtempSync(join(tmpdir(), "graphd-secured-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A token of a caller with the role, in the file of keys. */
function createToken(keys: string, role: string): string {
  const args = ["keys", "create", "--file", keys, "--role", role, "--name", role];
  return execFileSync(findProgram(), args, { stdio: ["ignore", "pipe", "ignore"] })
    .toString()
    .trim();
}

test("a graph calls its server with its own token, over one connection", async () => {
  const keys = join(folder, "keys.yaml");
  const token = createToken(keys, "admin");
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
});

test("callers with one role start runs on threads without questions, and answer without settings", async () => {
  const keys = join(folder, "starter.yaml");
  const [admin, starter, answerer] = ["admin", "starter", "answerer"].map((role) => ({
    token: createToken(keys, role),
  }));
  const server = await dev({ flags: ["--api-keys", keys] });
  const author = createClient(server.address, { security: admin ?? {} });
  await author.putGraph(REFUND);
  const client = createClient(server.address, { security: starter ?? {} });
  const threadId = "one";
  const run = await client.start("refund", { request: "10 EUR" }, { threadId });
  expect((await author.wait(threadId, run.runId)).state).toBe("interrupted");
  const another = client.start("refund", { request: "20 EUR" }, { threadId });
  await expect(another).rejects.toMatchObject({ reason: "ACCESS_DENIED" });
  await expect(another).rejects.toThrow(/discard-questions/);
  for (const begin of [client.start.bind(client), client.invoke.bind(client)]) {
    await expect(begin("refnd", { request: "30 EUR" })).rejects.toThrow(NotFoundError);
    await expect(begin("refund", null)).rejects.toThrow(EmptyInputError);
  }
  const person = createClient(server.address, { security: answerer ?? {} });
  const answer = new Command({ resume: { decision: "approved" } });
  await expect(person.start("refund", answer, { threadId, recursionLimit: 5 })).rejects.toThrow(
    /replace-settings/,
  );
  expect((await author.wait(threadId)).state).toBe("interrupted");
  await person.start("refund", answer, { threadId });
  expect((await author.wait(threadId)).state).toBe("succeeded");
  for (const one of [author, client, person]) one.close();
  await server.close();
});

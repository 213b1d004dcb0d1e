import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BulkAnswerError, Client, Question } from "../src/client/index.js";
import { type DevServer, dev, findProgram } from "../src/dev/index.js";
import { InvalidArgumentError, InvalidResumeError } from "../src/errors/index.js";
import { createClient } from "../src/node.js";
import { startRelay } from "./relay.js";

/** Two decide, and the card is secret. */
const CARD = `
graph: card
channels: { amount: {}, decision: {} }
input: [amount]
nodes:
  decide:
    ask:
      message: "'Charge?'"
      value: { amount: state.amount, card: "'card-4711'" }
      schema: { enum: ["yes", "no"] }
      secret: [/card]
      people: { users: [ann, ben], approvals: 2 }
      update: { decision: answer }
edges: [START -> decide -> END]
`;

const folder = mkdtempSync(join(tmpdir(), "graphd-inbox-"));
let server: DevServer;
let tokens: Record<string, string>;
let [ann, ben]: Client[] = [];

beforeAll(async () => {
  const keys = join(folder, "keys.yaml");
  const createKey = (name: string) => {
    const args = ["keys", "create", "--file", keys, "--role", "admin", "--name", name];
    return execFileSync(findProgram(), args, { stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  };
  tokens = { ann: createKey("ann"), ben: createKey("ben") };
  const link = writeSecret("link-keys");
  const sealing = writeSecret("sealing");
  const flags = ["--api-keys", keys, "--link-keys", link, "--links-url", "https://answer.example"];
  server = await dev({
    flags: [...flags, "--encryption-keys", sealing],
    store: `sqlite:${join(folder, "g.db")}`,
  });
  ann = createClient(server.address, { security: { token: tokens.ann ?? "" } });
  ben = createClient(server.address, { security: { token: tokens.ben ?? "" } });
  await ann.putGraph(CARD);
});

afterAll(async () => {
  ann?.close();
  ben?.close();
  await server?.close();
  rmSync(folder, { recursive: true });
});

function writeSecret(name: string): string {
  const file = join(folder, name);
  writeFileSync(file, `k1: ${Buffer.alloc(32, name).toString("base64")}\n`, { mode: 0o400 });
  return file;
}

/** The question of a new thread. */
async function ask(threadId: string): Promise<Question> {
  await ann?.invoke("card", { amount: 7 }, { threadId });
  for await (const question of ann?.inbox.list({ threadId }) ?? []) return question;
  throw new Error("no question is open");
}

test("an answer is checked before it is given", async () => {
  const question = await ask("checked");
  expect(await ann?.inbox.check(question, "yes")).toEqual({
    decides: false,
    repeated: false,
    missingVotes: 1,
    undo: 0,
  });
  await expect(ann?.inbox.check(question, "perhaps")).rejects.toThrow(InvalidResumeError);
  await ann?.inbox.answer(question, "yes");
  expect(await ann?.inbox.check(question, "yes")).toMatchObject({ repeated: true });
  expect(await ben?.inbox.check(question, "yes")).toMatchObject({ decides: true, missingVotes: 0 });
});

test("secret parts are shown, and the trail says to whom", async () => {
  const question = await ask("revealed");
  expect(question.value).toEqual({ amount: 7, card: { __redacted__: true } });
  const revealed = await ann?.inbox.reveal(question, { pointers: ["/card"], note: "to compare" });
  expect(revealed?.value).toEqual({ amount: 7, card: "card-4711" });
  expect(revealed?.entry).toMatchObject({ kind: "revealed", actor: "ann", note: "to compare" });
  expect(inspect(revealed)).toContain("to compare");
  expect(inspect({ revealed })).not.toContain("card-4711");
  await expect(ann?.inbox.reveal(question, { pointers: ["/amount"] })).rejects.toMatchObject({
    reason: "INVALID_FIELD",
  });
});

test("a link is for one question and one person", async () => {
  const question = await ask("linked");
  const link = await ann?.inbox.makeLink(question, { valid: 60_000, bound: true });
  expect(link?.url).toBe(`https://answer.example${link?.path}`);
  expect(link?.path).toMatch(/^\/a\//);
  expect(inspect([link])).toContain("expiresAt");
  expect(inspect([link])).not.toContain("/a/");
  expect(JSON.parse(JSON.stringify(link))).toMatchObject({ url: link?.url });
  expect(link?.expiresAt?.getTime()).toBeLessThanOrEqual(Date.now() + 60_000);
  expect((await ann?.inbox.makeLink(question, { principal: "ben", groups: ["finance"] }))?.url).toContain(
    "/a/",
  );
});

test("counts and statistics", async () => {
  const [all, mine, bens] = (await ann?.inbox.countEach([{}, { mine: true }, { assignee: "ben" }])) ?? [];
  const question = await ask("counted");
  expect(await ann?.inbox.count()).toEqual({ count: (all?.count ?? 0n) + 1n, precision: "exact" });
  expect(await ann?.inbox.count({ mine: true })).toMatchObject({ count: (mine?.count ?? 0n) + 1n });
  expect(bens?.precision).toMatch(/exact|at_most|at_least/);
  await ann?.inbox.answer(question, "no");
  const day = await ann?.inbox.statistics({ interval: 6 * 3_600_000 });
  expect(day).toMatchObject({ interval: 6 * 3_600_000, isPartial: false, others: undefined });
  expect(day?.all.total.asked).toBeGreaterThan(0n);
  expect(day?.all.intervals).toHaveLength(4);
  expect(Object.keys(day?.groups ?? {})).toContain("");
  const answers = await ann?.inbox.answerStatistics("card", "decide");
  expect(answers).toMatchObject({ defaulted: 0n, expired: 0n });
  await expect(ann?.inbox.statistics({ interval: 7 })).rejects.toMatchObject({ reason: "INVALID_FIELD" });
});

describe("one answer to many", () => {
  test("tells what came of each, over a broken connection", async () => {
    const questions = await Promise.all(["many-0", "many-1", "many-2", "many-3"].map(ask));
    const [first] = questions;
    if (first === undefined) throw new Error("there are questions");
    questions[3] = { ...(questions[3] ?? first), seen: "other" };
    const relay = await startRelay(server.address);
    const distant = createClient(relay.address, { security: { token: tokens.ann ?? "" } });
    await distant.inbox.count(); // it is connected
    relay.cut();
    const outcomes = await distant.inbox.answerMany(questions, "yes", { note: "all", requestId: "bulk" });
    expect(outcomes.map(({ threadId, stored, reason }) => [threadId, stored, reason]).sort()).toEqual([
      ["many-0", true, ""],
      ["many-1", true, ""],
      ["many-2", true, ""],
      ["many-3", false, "QUESTION_CHANGED"],
    ]);
    expect(await ann?.inbox.get("many-0", first.id)).toMatchObject({
      votes: [{ principal: "ann", value: "yes", note: "all" }],
    });
    const again = await distant.inbox.answerMany(questions.slice(0, 3), "yes", {
      note: "all",
      requestId: "bulk",
    });
    expect(again.every(({ stored }) => stored)).toBe(true);
    distant.close();
    relay.close();
  });

  test("an error has what came before it", async () => {
    const question = await ask("refused");
    const failed = ben?.inbox.answerMany([question, question], "yes", { requestId: "twice" });
    const error = (await failed?.catch((problem) => problem)) as BulkAnswerError;
    expect(error).toMatchObject({ reason: "INVALID_FIELD", requestId: "twice", outcomes: [] });
    await expect(ann?.inbox.answerMany([], "yes")).rejects.toThrow(InvalidArgumentError);
  });
});

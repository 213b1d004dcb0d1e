// Threads and graphs: what a run did, and what changes it.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, findViolations, openPage, Server, takePicture } from "./harness.mjs";

describe("threads and graphs", () => {
  let server;
  before(async () => (server = await Server.start({ store: "sqlite", graphs: ["nested-graphs"] })));
  after(() => server.stop());

  const stateOf = async (threadId) => JSON.parse((await server.call("ana", "ThreadService/GetState", { threadId })).values.json);

  check("a run is started with a form, and the thread shows it", async () => {
    const page = await openPage(server, "ana", "/graphs/expense");
    await page.getByRole("textbox", { name: "Amount" }).fill("42.50");
    await page.getByRole("textbox", { name: "Employee" }).fill("ana");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator("#field--purpose[aria-invalid=true]").waitFor();
    await page.getByRole("textbox", { name: "Purpose" }).fill("Lunch");
    await page.getByRole("textbox", { name: /^Thread/ }).fill("lunch");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { level: 1, name: /lunch/ }).waitFor();
    await page.getByText("at rest").waitFor();
    await page.getByText('"Approved: 42.50 EUR for Lunch, paid within 30 days."').waitFor();
    await page.locator(".node.done").nth(3).waitFor();
    assert.equal(await page.locator(".node.done").count(), 4);
    assert.equal(await page.locator(".edge.taken").count(), 3);
    assert.deepEqual(page.problems, []);
  });

  check("checkpoints are stepped through, and the graph and the state follow", async () => {
    await server.ask("eva", "loop", "counted", { n: 0, most: 5 });
    const page = await openPage(server, "ana", "/threads/counted");
    await page.getByText("waits for people").first().waitFor();
    await page.getByRole("button", { name: /^count 5×/ }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.getByText("the past; nothing here changes it").waitFor();
    await page.getByRole("button", { name: /^count 4×/ }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("button", { name: /^count 3×/ }).waitFor();
    await page.getByText("+1 element").waitFor();
    assert.match(page.url(), /at=/);
    assert.deepEqual(page.problems, []);
  });

  check("a join waits for its sources, and edges that need not be taken are dashed", async () => {
    const question = await server.ask("eva", "trip", "rome", { place: "Rome" });
    const page = await openPage(server, "ana", "/threads/rome");
    await page.getByRole("img", { name: "join of flight, hotel, waits for the others" }).waitFor();
    assert.equal(await page.locator(".edge.taken").count(), 2);
    assert.equal(await page.locator(".edge path[stroke-dasharray]").count(), 2);
    await server.answer("ana", question, '"yes"');
    await page.getByRole("img", { name: "join of flight, hotel, done" }).waitFor();
    assert.equal(await page.locator(".edge.taken").count(), 5);
    await takePicture(page, "join");
    assert.deepEqual(page.problems, []);
  });

  check("what happens between the first reading and the first events is shown", async () => {
    const question = await server.ask("eva", "trip", "paris", { place: "Paris" });
    const { promise: answered, resolve: letGo } = createBarrier();
    const { promise: read, resolve: noteRead } = createBarrier();
    const page = await openPage(server, "ana", "/threads/paris", { prepare: async (prepared) => {
      prepared.on("requestfinished", (request) => request.url().endsWith("ThreadService/ListCheckpoints") && noteRead());
      await prepared.route("**/*GraphService/Watch", async (route) => {
        await answered;
        await route.continue();
      });
    } });
    await read;
    await server.answer("ana", question, '"yes"');
    letGo();
    await page.getByRole("img", { name: "join of flight, hotel, done" }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("the graph of a node opens in place, with the run on it, and closes", async () => {
    const question = await server.ask("eva", "trip", "oslo", { place: "Oslo" });
    const page = await openPage(server, "ana", "/threads/oslo?tab=timeline");
    const toggle = page.getByRole("button", { name: "graph of hotel" });
    await toggle.focus();
    assert.equal(await toggle.getAttribute("aria-expanded"), "false");
    await page.keyboard.press("Enter");
    const inner = page.getByRole("group", { name: "Graph of hotel" });
    await inner.getByRole("button", { name: /^check( [0-9.]+ m?s)?, done$/ }).waitFor();
    await inner.getByRole("button", { name: "ask waits, waits for people" }).waitFor();
    assert.equal(await inner.locator(".edge.taken").count(), 2);
    assert.equal(await toggle.getAttribute("aria-expanded"), "true");
    assert.match(page.url(), /open=hotel/);
    assert.deepEqual(await findViolations(page), []);
    await takePicture(page, "subgraph");

    await inner.getByRole("button", { name: /^check/ }).click();
    await page.getByText("hotel › check").waitFor();
    await page.locator(".event").first().waitFor();
    assert.deepEqual([...new Set(await page.locator(".event b").allTextContents())], ["check "]);

    await server.answer("ana", question, '"no"');
    await inner.getByRole("button", { name: /^ask.*, done$/ }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await inner.getByRole("button", { name: /^ask.*, not reached$/ }).waitFor();
    await toggle.press(" ");
    await inner.waitFor({ state: "detached" });
    assert.doesNotMatch(page.url(), /open=/);
    assert.deepEqual(page.problems, []);
  });

  check("the graph of a node that keeps its state shows the visits up to the checkpoint, and graphs in graphs open", async () => {
    await server.call("eva", "GraphService/StartRun", { run: { graph: "rounds", threadId: "rounds", createThread: true, input: { json: '{"n":0,"round":0}' } }, wait: "20s" });
    const { checkpoints } = await server.call("ana", "ThreadService/ListCheckpoints", { threadId: "rounds" });
    const page = await openPage(server, "ana", "/threads/rounds?open=visit,visit%2Fdeep");
    const [visit, deep] = ["visit", "deep"].map((name) => page.getByRole("group", { name: `Graph of ${name}` }));
    await visit.getByRole("button", { name: /^up 2×.*, done$/ }).waitFor();
    await deep.getByRole("button", { name: /^keep.*, done$/ }).waitFor();
    const afterFirst = checkpoints.find((s) => s.step === 1).checkpoint.checkpointId;
    await page.goto(`${server.url}/threads/rounds?open=visit,visit%2Fdeep&at=${afterFirst}`);
    await visit.getByRole("button", { name: /^up(?! 2×).*, done$/ }).waitFor();
    await deep.getByRole("button", { name: /^keep.*, done$/ }).waitFor();
    await page.getByRole("button", { name: "graph of visit" }).click();
    await visit.waitFor({ state: "detached" });
    assert.deepEqual(page.problems, []);
  });

  check("the graph of a node that keeps no states is shown without the run", async () => {
    await server.call("eva", "GraphService/StartRun", { run: { graph: "forgets", threadId: "forgets", createThread: true, input: { json: '{"n":0}' } }, wait: "20s" });
    const page = await openPage(server, "ana", "/threads/forgets?open=part");
    await page.getByRole("button", { name: /^part.*, done$/ }).waitFor();
    await page.getByRole("button", { name: "keep", exact: true }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("the graph of a node opens in the drawing of a graph, and what can't be read says so", async () => {
    const page = await openPage(server, "ana", "/graphs/trip");
    await page.getByRole("button", { name: "graph of hotel" }).click();
    const inner = page.getByRole("group", { name: "Graph of hotel" });
    await inner.getByRole("img", { name: "ask" }).waitFor();
    assert.deepEqual(page.problems, []);
    await page.route("**/graphd.v1.RegistryService/GetGraph", (route) => (route.request().postData().includes("approval") ? route.fulfill({ status: 403, json: { code: "permission_denied", message: "you may not see the graph approval" } }) : route.continue()));
    await page.reload();
    await page.getByRole("alert").getByText("you may not see the graph approval").waitFor();
    await page.getByRole("img", { name: "hotel", exact: true }).waitFor();
    assert.equal(await inner.count(), 0);
  });

  check("a fork has the change, and the thread that was forked stays as it was", async () => {
    await server.ask("eva", "loop", "source", { n: 0, most: 3 });
    const page = await openPage(server, "ana", "/threads/source");
    await page.locator(".state").waitFor();
    await page.keyboard.press("f");
    await page.getByRole("textbox", { name: "Name of the new thread" }).fill("forked");
    await page.getByRole("textbox", { name: /Change of the state/ }).fill('{"n": 40}');
    await takePicture(page, "fork");
    await page.getByRole("button", { name: "Fork", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: /forked/ }).waitFor();
    assert.equal((await stateOf("forked")).n, 40);
    assert.equal((await stateOf("source")).n, 3);
    assert.deepEqual(page.problems, []);
  });

  check("a run is run again, and cancelled", async () => {
    await server.ask("eva", "loop", "again", { n: 0, most: 3 });
    const page = await openPage(server, "ana", "/threads/again");
    await page.locator(".state").waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.getByText("the past; nothing here changes it").waitFor();
    await page.keyboard.press("r");
    await page.getByRole("dialog").getByText("Run again").last().click();
    await page.getByRole("tab", { name: /Branches 2/ }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("textbox", { name: /Reason/ }).fill("not needed");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
    await page.getByText("at rest").waitFor();
    await page.getByRole("tab", { name: "Runs" }).click();
    await page.getByText("cancelled").first().waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("a thread that is not there says so", async () => {
    const page = await openPage(server, "ana", "/threads/nowhere");
    await page.getByRole("alert").getByText(/nowhere/).waitFor();
  });

  check("threads are found by graph and state, and opened by id", async () => {
    const page = await openPage(server, "ana", "/threads");
    await page.getByRole("link", { name: "counted" }).waitFor();
    await page.getByRole("textbox", { name: "Find threads" }).fill("graph:expense");
    await page.getByRole("link", { name: "counted" }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "lunch" }).waitFor();
    await page.getByRole("textbox", { name: "Find threads" }).fill("counted");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /counted/ }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("a layout that takes too long is given up", async () => {
    const page = await openPage(server, "ana", "/inbox");
    await page.waitForURL((url) => !url.hash); // the page has kept the token; one that leaves before has none
    await page.clock.install();
    await page.addInitScript(() => (globalThis.Worker = class { // one that never answers
      postMessage() { document.documentElement.dataset.layout = "begun"; }
      terminate() { document.documentElement.dataset.layout = "given up"; }
    }));
    await page.goto(server.url + "/graphs/expense");
    await page.locator("[data-layout]").waitFor({ state: "attached" }); // begun, or given up already on a busy machine
    await page.clock.runFor(10_000);
    await page.getByRole("alert").getByText(/takes longer than 10 s/).waitFor();
    await page.locator('[data-layout="given up"]').waitFor({ state: "attached" });
    assert.deepEqual(page.problems, []);
  });
});

function createBarrier() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}

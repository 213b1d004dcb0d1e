// Much of everything: rows, checkpoints, events and nodes.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, long, openPage, Server, writeArtifact } from "./harness.mjs";

describe("much of everything", long, () => {
  let server;
  before(async () => {
    server = await Server.start();
    const start = async (i) => server.call("eva", "GraphService/StartRun", { run: { graph: "expense", threadId: `t${i}`, createThread: true, input: { json: `{"employee":"eva","amount":${100 + (i % 900)},"purpose":"number ${i}"}` } } });
    for (let i = 0; i < 3000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, k) => start(i + k)));
    await server.ask("eva", "loop", "counted", { n: 0, most: 500 });
    await server.call("ana", "RegistryService/PutGraph", { spec: makeGraph("large", 300) });
    await server.call("ana", "RegistryService/PutGraph", { spec: makeGraph("too-large", 1000) });
    await server.call("eva", "GraphService/StartRun", { run: { graph: "large", threadId: "large", createThread: true, input: { json: "{}" } }, wait: "60s" });
  });
  after(() => server.stop());

  check("thousands of rows are few elements, and scroll", async () => {
    const page = await openPage(server, "ana");
    await page.getByRole("option").first().waitFor();
    const scrolled = await page.evaluate(async () => {
      const box = document.querySelector(".rows");
      const frames = [];
      for (let i = 0; i < 120; i++) {
        const from = performance.now();
        box.scrollTop += 900;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - from);
      }
      frames.sort((a, b) => a - b);
      return { rows: box.firstElementChild.offsetHeight / 62, elements: document.querySelectorAll("*").length, p50: frames[60], p95: frames[114] };
    });
    writeArtifact("scroll.json", JSON.stringify(scrolled));
    assert.ok(scrolled.elements < 1200, `${scrolled.elements} elements`);
    assert.ok(scrolled.rows > 1000, `${scrolled.rows} rows`);
    assert.deepEqual(page.problems, []);
  });

  check("a thread with hundreds of checkpoints and thousands of events is shown, and stepped through", async () => {
    const page = await openPage(server, "ana", "/threads/counted?tab=timeline");
    await page.getByText("502 checkpoints").waitFor();
    await page.getByRole("tab", { name: /Timeline \d{4}/ }).waitFor();
    assert.ok((await page.locator(".event").count()) < 100);
    assert.ok((await page.locator(".checkpoints button").count()) < 100);
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("button", { name: /^count 499×/ }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("a graph of 300 nodes is drawn, and the page goes on meanwhile", async () => {
    const page = await openPage(server, "ana", "/graphs");
    await page.getByRole("link", { name: "large", exact: true }).waitFor();
    await page.evaluate(() => {
      globalThis.held = [];
      new PerformanceObserver((list) => globalThis.held.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
    });
    const from = Date.now();
    await page.getByRole("link", { name: "large", exact: true }).click();
    await page.locator(".node").nth(301).waitFor();
    const shownAfter = Date.now() - from;
    const longest = await page.evaluate(() => Math.max(0, ...globalThis.held));
    writeArtifact("large_graph.json", JSON.stringify({ shownAfter, longest }));
    assert.ok(longest < 500, `the page was held up for ${longest} ms`);
    assert.deepEqual(page.problems, []);
  });

  check("the checkpoints of a thread with a large graph are stepped through at once", async () => {
    const page = await openPage(server, "ana", "/threads/large");
    await page.locator(".node.done").nth(300).waitFor();
    const steps = await page.evaluate(async () => {
      const frame = () => new Promise(requestAnimationFrame);
      const steps = [];
      for (let i = 0; i < 30; i++) {
        const from = performance.now();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
        await frame();
        await frame();
        steps.push(performance.now() - from);
      }
      return steps.sort((a, b) => a - b);
    });
    const [p50, p95] = [steps[15], steps[28]];
    writeArtifact("steps.json", JSON.stringify({ p50, p95 }));
    assert.ok(p50 < 200, `a step took ${p50} ms`);
    assert.ok((await page.locator(".node.done").count()) < 300);
    assert.deepEqual(page.problems, []);
  });

  check("a graph that is too large to draw says so", async () => {
    const page = await openPage(server, "ana", "/graphs/too-large");
    await page.getByRole("alert").getByText(/1002 nodes and \d+ edges, too many/).waitFor();
    assert.deepEqual(page.problems, []);
  });
});

/** Returns a graph whose nodes each lead to one of the next ones, and some to another one. */
function makeGraph(name, count) {
  const nodes = Array.from({ length: count }, (_, i) => ({ name: `node${i}`, expr: {} }));
  const edges = nodes.map((n, i) => ({ sources: [i === 0 ? "__start__" : `node${Math.max(0, i - 1 - (i % 7))}`], target: n.name }));
  for (let i = 0; i + 8 < count; i += 3) edges.push({ sources: [`node${i}`], target: `node${i + 5}` });
  return { name, channels: [{ name: "n" }], nodes, edges };
}

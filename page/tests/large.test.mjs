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
});

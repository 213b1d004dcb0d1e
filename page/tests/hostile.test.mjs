// What a graph and people write is text, and values stay what they are.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, describe } from "node:test";
import { check, openPage, Server } from "./harness.mjs";

describe("hostile texts and numbers", () => {
  let server;
  before(async () => (server = await Server.start()));
  after(() => server.stop());

  /** Asks about a value that is given as JSON text. */
  async function ask(threadId, given, message = "Is this right?") {
    const input = `{"given":${given},"message":${JSON.stringify(message)}}`;
    await server.call("eva", "GraphService/StartRun", { run: { graph: "anything", threadId, createThread: true, input: { json: input } }, wait: "20s" });
    const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", { threadId });
    return interrupts[0];
  }

  check("scripts, links and hidden characters are shown, and do nothing", async () => {
    const script = "<img src=x onerror=alert(1)><script>alert(1)</script>";
    const message = `Pay \u202eEUR\u{e0041}\n\n${script} [a bank](javascript:alert(1)) [pay](https://bank.example/) ![p](https://bank.example/p.png) **bold**`;
    const q = await ask("hostile", JSON.stringify({ note: script, name: "a\u200bb" }), message);
    await server.call("ana", "InterruptService/CommentInterrupt", { threadId: "hostile", interruptId: q.interruptId, text: script });
    const page = await openPage(server, "ana", `/inbox/hostile/${q.interruptId}`);
    let dialogs = 0;
    page.on("dialog", (d) => (dialogs++, d.dismiss()));
    await page.locator(".trail").getByText(script).waitFor();
    await page.locator(".facts").getByText(script).waitFor();
    assert.equal(await page.locator(".trail b").first().getAttribute("title"), "ana", "a short name may be that of two callers");
    assert.equal(await page.locator("img, script:not([src])").count(), 0);
    assert.deepEqual(await page.locator(".mark").allTextContents().then((all) => [...new Set(all)].sort()), ["U+200B", "U+202E", "U+E0041"]);
    assert.deepEqual(await page.locator(".md a").evaluateAll((links) => links.map((a) => [a.href, a.rel])), [
      ["https://bank.example/", "noopener noreferrer nofollow"],
      ["https://bank.example/p.png", "noopener noreferrer nofollow"],
    ]);
    await page.getByText("[a bank](javascript:alert(1))").waitFor();
    assert.equal(dialogs, 0);
    assert.deepEqual(page.problems, []);
  });

  const values = ["9007199254740993", "1e400", "-0", "0.10", '{"b":1,"a":2,"1":3,"0":4}', '{"__proto__":{"x":1},"constructor":2}', '"\\u2028\\ud83d\\ude00"', "[1.0,[],{}]"];
  for (const [i, value] of values.entries()) {
    check(`${value} goes through the form unchanged`, async () => {
      const threadId = `value-${i}`;
      const q = await ask(threadId, value);
      const page = await openPage(server, "ana", `/inbox/${threadId}/${q.interruptId}`);
      await page.getByRole("textbox", { name: /JSON/ }).fill(value);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+Enter");
      await page.getByText("The answer is stored").waitFor();
      const then = await server.call("ana", "InterruptService/GetInterrupt", { threadId, interruptId: q.interruptId });
      assert.deepEqual(JSON.parse(`[${then.response.json}]`), JSON.parse(`[${value}]`));
      const digits = (text) => text.replaceAll(/\s/g, "");
      if (!value.includes("\\")) assert.equal(digits(then.response.json), digits(value));
      assert.deepEqual(page.problems, []);
    });
  }

  const slow = { fences: "```".repeat(100_000), brackets: "[".repeat(200_000), quotes: ">".repeat(50_000), headings: "# a\n".repeat(20_000) };
  for (const [name, text] of Object.entries(slow)) {
    check(`a message of ${name} does not hold up the page`, async () => {
      const q = await ask(name, "1", `Is this right?\n\n${text}`);
      const begun = Date.now();
      const page = await openPage(server, "ana", `/inbox/${name}/${q.interruptId}`);
      await page.getByRole("textbox", { name: /JSON/ }).fill("1");
      assert.ok(Date.now() - begun < 15_000, `${Date.now() - begun} ms`);
      assert.deepEqual(page.problems, []);
    });
  }

  check("an address that is no text shows the page", async () => {
    const page = await openPage(server, "ana", "/inbox/%ff/%c3%28");
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("each field says what is wrong with it", async () => {
    const q = await server.ask("eva", "fields", "fields", { given: 1 });
    const page = await openPage(server, "ana", `/inbox/fields/${q.interruptId}`);
    const enter = (name, text) => page.getByRole("textbox", { name }).fill(text);
    await enter(/^Text/, "ab");
    await enter(/^Count/, "1.5");
    await enter(/^Share/, "0.3");
    await enter(/^Word/, "NO");
    await enter(/^Deep/, "");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("button", { name: "Add" }).click();
    await page.locator(".decide").getByText("Red").click();
    await page.getByRole("button", { name: /^Answer/ }).click();
    await page.locator(".answer .problem").first().waitFor();
    const wrong = await page.locator('.answer [aria-invalid="true"]').evaluateAll((all) =>
      all.map((e) => [e.id, e.getAttribute("aria-describedby")?.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").length > 0]),
    );
    for (const id of ["field--text", "field--count", "field--share", "field--word"]) {
      assert.deepEqual(wrong.find(([w]) => w === id), [id, true], JSON.stringify(wrong));
    }
    await page.locator("#field--text:focus").waitFor();
  });

  check("long words, long titles and texts from right to left stay inside of the page", async () => {
    const long = "Donaudampfschifffahrtsgesellschaftskapitän".repeat(30);
    const q = await ask("long", JSON.stringify({ [long.slice(0, 200)]: long, عربي: "هل توافق على الدفع؟" }), `${long.slice(0, 140)}\n\nهل توافق على الدفع؟ ${long}`);
    for (const width of [1440, 390]) {
      const page = await openPage(server, "ana", `/inbox/long/${q.interruptId}`, { width, height: 800 });
      await page.locator(".facts").waitFor();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
      assert.ok(await page.locator(".scroll").evaluate((e) => e.scrollWidth <= e.clientWidth + 1), "the question scrolls up and down only");
      assert.equal(await page.locator(".facts dd[dir=auto]").first().evaluate((e) => getComputedStyle(e).direction), "ltr");
    }
  });
});

// Titles of the fields of a large form, of which each has another kind.
const words = ["Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen", "هل توافق على الدفع؟", "Überweisungszweck", "כתובת למשלוח", "Amount"];
const kinds = [{ type: "string", minLength: 2 }, { type: "integer" }, { type: "boolean" }, { enum: ["ja", "nein", "أحيانا"] }, { type: "array", items: { type: "string" } }];

describe("a schema that leads back to itself", () => {
  let server;
  let folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "graphd-back-"));
    const properties = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, { $ref: "#/$defs/back" }]));
    const schema = { $ref: "#/$defs/back", $defs: { back: { type: "object", properties } } };
    const graph = {
      graph: "back", channels: { answer: {} },
      nodes: { ask: { ask: { message: "'How deep is it?'", schema, update: { answer: "answer" } } } }, edges: ["START -> ask", "ask -> END"],
    };
    writeFileSync(join(folder, "back.yaml"), JSON.stringify(graph));
    server = await Server.start({ graphs: [relative(import.meta.dirname, folder)] });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  check("is a form up to a number of fields", async () => {
    const q = await server.ask("eva", "back", "back", {});
    const page = await openPage(server, "ana", `/inbox/back/${q.interruptId}`);
    await page.getByRole("heading", { level: 1, name: /How deep/ }).waitFor();
    await page.locator(".answer").waitFor();
    assert.ok((await page.locator(".answer .field").count()) < 3000);
    assert.deepEqual(page.problems, []);
  });
});

describe("a form of two hundred fields", () => {
  let server;
  let folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "graphd-fields-"));
    const properties = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, { ...kinds[i % 5], title: `${words[(i * 3) % 5]} ${i}` }]));
    const schema = { type: "object", required: ["f0", "f195"], additionalProperties: false, properties };
    const graph = {
      graph: "many", channels: { answer: {} },
      nodes: { ask: { ask: { message: "'Was gilt für diese Bestellung?'", schema, update: { answer: "answer" } } } }, edges: ["START -> ask", "ask -> END"],
    };
    writeFileSync(join(folder, "many.yaml"), JSON.stringify(graph));
    server = await Server.start({ graphs: [relative(import.meta.dirname, folder)] });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  check("is shown, says what is wrong far below, and keeps what was entered", async () => {
    const q = await server.ask("eva", "many", "many", {});
    const page = await openPage(server, "ana", `/inbox/many/${q.interruptId}`);
    const field = (i) => page.locator(`#field--f${i}`);
    await field(199).waitFor();
    assert.equal(await page.locator(".answer .field, .answer fieldset").count() >= 200, true);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
    assert.ok(await page.locator(".scroll").evaluate((e) => e.scrollWidth <= e.clientWidth + 1), "the question scrolls up and down only");
    await field(0).fill("eins");
    await field(195).fill("x");
    await field(196).fill("9007199254740993");
    await page.getByRole("button", { name: /^Answer/ }).click();
    await page.locator("#field--f195:focus").waitFor();
    assert.equal(await field(195).getAttribute("aria-invalid"), "true");
    await field(195).fill("هل توافق");
    await page.getByRole("button", { name: /^Answer/ }).click();
    await page.getByText("The answer is stored").waitFor();
    const { values } = await server.call("ana", "ThreadService/GetState", { threadId: "many" });
    assert.equal(values.json, '{"answer":{"f0":"eins","f195":"هل توافق","f196":9007199254740993}}');
    assert.deepEqual(page.problems, []);
  });
});

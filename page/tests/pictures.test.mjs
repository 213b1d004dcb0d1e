// The page looks as its pictures in docs/pictures do. `make pictures` makes them anew.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { check, isLong, openPage, root, Server, writeArtifact } from "./harness.mjs";
import { withWholeDay } from "./days.mjs";
import { comparePictures, freezeTime, pictureOptions } from "./pictures.mjs";

const folder = join(root, "docs", "pictures");
const isMaking = process.env.UPDATE_PICTURES === "yes";
const mostDifferent = isLong ? 0.002 : 0.02; // browsers draw letters a little differently

const customer = {
  customer: "Lena Vogt · customer since 2019", order: "8841 · 3 items · paid by card", amount: "1,240.00 EUR", risk: 0.18,
  request: "I ordered the sofa in petrol and you sent moss green. I want my money back please.", account_id: "9007199254740993", card: "ends in 1111",
};
const text = "The customer received the **wrong colour** and wants the money back, not an exchange.\n\nOrder 8841 is 12 days old and inside the return window. The amount is above 1,000 EUR, so **two support leads** have to agree.";

/** Gives the overview a day of many questions. */
const withBusyDay = (body) => body.beginTime === undefined ? body : withWholeDay({ ...body, beginTime: "2026-03-16T11:00:00Z" }, {
  "support-leads": { part: 0.3, lateOf: 0.02, medianWait: "660s" }, sre: { part: 0.2, lateOf: 0, medianWait: "240s" }, finance: { part: 0.3, lateOf: 0.19, medianWait: "5700s" },
  compliance: { part: 0.1, lateOf: 0.26, medianWait: "2880s" }, claims: { part: 0.1, lateOf: 0.04, medianWait: "7200s" },
});

describe("pictures", () => {
  let server;
  // Minutes since threads asked.
  const ages = { "ticket-8841": 12.4, "ticket-8839": 17.4, "ticket-8837": 5.4, "ticket-8830": 21.4, "deploy-142": 6.4, "hotel-77": 190.4, "laptop-12": 35.4, "train-9": 8.4 };
  before(async () => {
    server = await Server.start({ people: { ana: ["support-leads", "team-leads"], ben: ["support-leads"], dora: ["support-leads"], chen: [] }, graphs: ["people-graphs"] });
    const refund = (thread, title, amount) => server.ask("chen", "refunds", thread, { case: { title, text, order: thread, facts: { ...customer, amount } } });
    const big = await refund("ticket-8841", "Refund 1,240.00 EUR for order 8841?", "1,240.00 EUR");
    await server.call("dora", "InterruptService/ClaimInterrupt", { threadId: big.threadId, interruptId: big.interruptId });
    await server.call("dora", "InterruptService/ReleaseInterrupt", { threadId: big.threadId, interruptId: big.interruptId, note: "I sold her the sofa, one of you should look." });
    await server.call("ana", "InterruptService/CommentInterrupt", { threadId: big.threadId, interruptId: big.interruptId, text: "Do we get the sofa back, or is pickup more than it is worth?" });
    const responses = [{ interruptId: big.interruptId, value: { json: '{"decision":"approved","refund":1240,"channels":["e-mail"]}' }, note: "Our mistake, and she has been with us for years." }];
    await server.call("ben", "GraphService/ResumeRun", { resume: { threadId: big.threadId, responses } });
    await refund("ticket-8839", "Refund 89.90 EUR for order 8839?", "89.90 EUR");
    await refund("ticket-8837", "Refund 312.00 EUR for order 8837?", "312.00 EUR");
    await refund("ticket-8830", "Refund 2,310.50 EUR for order 8830?", "2,310.50 EUR");
    const expense = (thread, amount, purpose) => server.ask("chen", "expense", thread, { employee: "chen", amount, purpose });
    await expense("hotel-77", 412, "3 nights in Lisbon");
    await expense("laptop-12", 1840, "Laptop");
    await expense("train-9", 240, "Train to Berlin");
    const migration = { tool: "run_migration", cluster: "eu-1", file: "0142_drop_legacy_flags.sql", rows: "48,211,902", locks: "ACCESS EXCLUSIVE, about 4 s" };
    const run = await server.ask("chen", "dba-agent", "deploy-142", { call: migration });
    await server.call("ana", "InterruptService/ClaimInterrupt", { threadId: run.threadId, interruptId: run.interruptId });
  });
  after(() => server.stop());

  const inbox = async (page) => {
    await page.getByRole("option", { name: /8841/ }).click();
    await page.getByRole("tab", { name: /Trail [1-9]/ }).waitFor();
  };
  const states = [
    ["inbox-light", "/inbox", {}, inbox],
    ["inbox-dark", "/inbox", { theme: "dark" }, inbox],
    ["question-invalid", "/inbox", {}, async (page) => {
      await inbox(page);
      await page.keyboard.press("2");
      await page.keyboard.press("Control+Enter");
      await page.locator("#field--conditions:focus").waitFor();
    }],
    ["question-own", "/inbox", { who: "chen", theme: "dark" }, inbox],
    ["question-phone", "/inbox", { width: 390, height: 844 }, inbox],
    ["question-tool", "/inbox", {}, async (page) => {
      await page.getByRole("option", { name: /0142/ }).click();
      await page.getByRole("tab", { name: "Trail 2" }).waitFor();
      for (const thread of [/8839/, /8837/]) await page.getByRole("option", { name: thread }).click({ modifiers: ["Control"] });
      await page.getByText("2 chosen").waitFor();
    }],
    ["thread-light", "/threads/ticket-8841", {}, (page) => page.locator(".node").nth(7).waitFor()],
    ["thread-dark", "/threads/ticket-8841?tab=timeline", { theme: "dark" }, (page) => page.locator(".node").nth(7).waitFor()],
    ["overview-light", "/overview", {}, (page) => page.getByText("By graph").waitFor()],
    ["overview-dark", "/overview", { theme: "dark" }, (page) => page.getByText("By graph").waitFor()],
    ["keys-dark", "/inbox", { theme: "dark" }, async (page) => {
      await inbox(page);
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
    }],
    ["question-undo", "/inbox", { theme: "dark" }, async (page) => {
      await page.getByRole("option", { name: /0142/ }).click();
      await page.keyboard.press("1");
      await page.keyboard.press("Control+Enter");
      await page.getByText(/takes effect in/).waitFor();
    }],
  ];
  for (const [name, path, { who = "ana", ...size }, prepare] of isLong || isMaking ? states : states.slice(0, 2)) {
    check(`of ${name}`, async () => {
      const page = await openPage(server, who, path, { ...pictureOptions, ...size, prepare: (p) => freezeTime(p, ages, withBusyDay) });
      await page.addStyleTag({ content: "* { caret-color: transparent !important; }" });
      await prepare(page);
      await page.evaluate(() => document.fonts.ready);
      await page.waitForTimeout(300); // what is read when it is shown
      const now = await page.screenshot();
      const file = join(folder, name + ".png");
      if (isMaking) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(file, now);
        return;
      }
      assert.ok(existsSync(file), `there is no ${file}: make pictures`);
      await page.goto("about:blank");
      const different = await comparePictures(page, now, readFileSync(file));
      if (different > mostDifferent) writeArtifact(`different-${name}.png`, now);
      assert.ok(different <= mostDifferent, `${(different * 100).toFixed(2)} % of the pixels of ${name}.png differ: look at .cache/page/different-${name}.png, and make pictures`);
    });
  }
});

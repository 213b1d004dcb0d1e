// The overview: what the server counted, and how a whole day of it looks.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, findViolations, openPage, Server, takePicture } from "./harness.mjs";
import { withWholeDay } from "./days.mjs";

const groups = {
  finance: { part: 0.4, lateOf: 0.16, medianWait: "5700s" },
  sre: { part: 0.2, lateOf: 0, medianWait: "240s" },
  "team-leads": { part: 0.3, lateOf: 0.03, medianWait: "660s" },
  claims: { part: 0, medianWait: undefined },
};

describe("the overview", () => {
  let server;
  before(async () => {
    server = await Server.start();
    const laptop = await server.expense("laptop", 1840);
    await server.expense("train", 240, "Train to Berlin");
    const voted = await server.answer("ben", laptop, { decision: "approved", account: "6600" });
    assert.ok(voted);
    await server.answer("ana", (await server.call("ana", "InterruptService/ListInterrupts", { threadId: "laptop" })).interrupts[0], { decision: "approved", account: "6600" });
  });
  after(() => server.stop());

  check("shows what the server counted", async () => {
    const page = await openPage(server, "ana", "/overview");
    const card = (title) => page.locator(".card", { hasText: title });
    await card("Answered in time").getByText("100 %").waitFor();
    assert.match(await card("Median wait").locator("b").innerText(), /^\d.* (ms|s)$/);
    await card("Defaults taken").getByText("0", { exact: true }).waitFor();
    const row = page.getByRole("row", { name: /^finance/ });
    await row.getByText("100 %").waitFor();
    assert.match(await row.innerText(), /^finance\s+\d\s+\d/);
    await page.getByText(/It counts since/).waitFor();
    const counted = await page.locator(".chart tbody tr").allInnerTexts();
    const sum = (at) => counted.reduce((n, line) => n + Number(line.split(/\s+/)[at]), 0);
    const { all } = await server.call("ana", "InterruptService/GetInterruptStatistics", {});
    assert.equal(sum(1), Number(all.total.asked));
    assert.equal(sum(2), Number(all.total.answered));
    assert.ok(Number(all.total.asked) >= 2 && Number(all.total.answered) >= 1);
    assert.deepEqual(page.problems, []);
  });

  check("counts what is asked while it is shown", async () => {
    const page = await openPage(server, "ana", "/overview");
    const hours = page.locator(".chart tbody td:nth-child(2)");
    const sum = async () => (await hours.allInnerTexts()).reduce((n, text) => n + Number(text), 0);
    await page.locator(".chart tbody tr").first().waitFor({ state: "attached" });
    const before = await sum();
    await server.expense("hotel", 412);
    while ((await sum()) !== before + 1) await page.waitForTimeout(100);
  });

  for (const [theme, width, height] of [["light", 1440, 900], ["dark", 1440, 900], ["light", 1000, 800], ["light", 390, 844]]) {
    check(`shows a whole day, ${theme} at ${width}`, async () => {
      const page = await openPage(server, "ana", "/overview", { theme, width, height, prepare: (p) => p.route("**/*InterruptService/GetInterruptStatistics", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: withWholeDay(await response.json(), groups) });
      }) });
      await page.getByRole("row", { name: /^sre .* 4 m 100 % 0/ }).waitFor();
      await page.getByRole("row", { name: /^claims .* – – 0/ }).waitFor();
      assert.equal(await page.locator(".card", { hasText: "Median wait" }).innerText().then((t) => t.replaceAll(/\s+/g, " ")), "Median wait 11 m 95 of 100 within 2 h 8 m");
      await takePicture(page, `overview-day-${theme}-${width}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector(".app").scrollWidth <= innerWidth), "nothing sticks out");
      assert.deepEqual(await findViolations(page), []);
      assert.deepEqual(page.problems, []);
    });
  }
});

// Several tabs of one browser over HTTP/1.1, of which a browser opens six connections to a server.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, openPage, Server } from "./harness.mjs";

describe("several tabs", () => {
  let server;
  before(async () => (server = await Server.start()));
  after(() => server.stop());

  /** Opens tabs of one browser, and counts the streams that each has open. */
  const openTabs = async (count, who = "ana", path = "/inbox", beside = undefined) => {
    const tabs = [];
    for (let i = 0; i < count; i++) {
      const page = await openPage(server, who, path, { beside: tabs[0] ?? beside });
      await page.getByText("live", { exact: true }).waitFor();
      tabs.push(page);
    }
    return tabs;
  };

  /** Counts the streams of the inbox that a page opens from now on. */
  const countStreams = (page) => {
    const seen = { open: 0 };
    page.on("request", (r) => r.url().includes("WatchInterrupts") && seen.open++);
    return seen;
  };

  /** Does as if a tab was hidden, or shown again. */
  const setHidden = (page, hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);

  check("are all live, and an answer that one gives is seen in all", async () => {
    await server.expense("train", 240);
    await server.expense("hotel", 380.5);
    const tabs = await openTabs(7);
    for (const page of tabs) await page.getByRole("option", { name: /train/ }).waitFor();
    await tabs[6].getByRole("option", { name: /train/ }).click();
    await tabs[6].keyboard.press("1");
    await tabs[6].keyboard.press("Control+Enter");
    for (const page of tabs) await page.getByRole("option", { name: /train/ }).waitFor({ state: "detached" });
    await server.expense("chair", 620);
    for (const page of tabs) {
      await page.getByRole("option", { name: /chair/ }).waitFor();
      assert.equal(await page.getByRole("option").count(), 2);
      assert.deepEqual(page.problems, []);
    }
  });

  check("go on when the one that reads closes, and none misses or repeats a question", async () => {
    const tabs = await openTabs(4);
    const streams = tabs.map(countStreams);
    const lists = tabs.map((page) => {
      const seen = { count: 0 };
      page.on("request", (r) => r.url().includes("ListInterrupts") && seen.count++);
      return seen;
    });
    const asking = Promise.all(Array.from({ length: 12 }, (_, i) => server.expense(`trip-${i}`, 200 + i)));
    await tabs[0].getByRole("option", { name: /trip/ }).first().waitFor();
    await tabs.shift().close();
    await asking;
    await server.expense("last", 300);
    const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", {});
    for (const page of tabs) {
      await page.getByRole("option", { name: /last/ }).waitFor();
      await page.waitForFunction((n) => document.querySelectorAll("[role=option]").length === n, interrupts.length);
      assert.deepEqual(page.problems, []);
    }
    assert.equal(streams.reduce((sum, s) => sum + s.open, 0), 1, "one tab takes over");
    assert.equal(lists.reduce((sum, s) => sum + s.count, 0), 0, "no tab has to list anew");
  });

  check("of two callers share nothing", async () => {
    const [ana] = await openTabs(1);
    const tom = await openPage(server, "tom", "/inbox", { beside: ana });
    await tom.getByText("live", { exact: true }).waitFor();
    await ana.close();
    await server.expense("desk", 500);
    await tom.getByRole("option", { name: /desk/ }).waitFor();
    await tom.getByText("Tom", { exact: true }).waitFor();
  });

  check("with other filters have streams of their own", async () => {
    const [all] = await openTabs(1);
    const [some] = await openTabs(1, "ana", "/inbox?q=graph:fields", all);
    await server.ask("eva", "fields", "fields-1", { given: 1 });
    await some.getByRole("option").first().waitFor();
    await server.expense("sofa", 700);
    await all.getByRole("option", { name: /sofa/ }).waitFor();
    assert.equal(await some.getByRole("option").count(), 1);
  });

  check("that are hidden leave the stream to others, and have missed nothing when they are seen", async () => {
    const [first, second] = await openTabs(2);
    const streams = countStreams(second);
    await setHidden(first, true);
    await server.expense("lamp", 150);
    await second.getByRole("option", { name: /lamp/ }).waitFor();
    await first.getByRole("option", { name: /lamp/ }).waitFor({ state: "attached" });
    assert.equal(streams.open, 1);
    await setHidden(second, true);
    await server.expense("shelf", 160);
    await setHidden(first, false);
    await first.getByRole("option", { name: /shelf/ }).waitFor();
    await second.getByRole("option", { name: /shelf/ }).waitFor({ state: "attached" });
  });

  check("with a thread each are live while they are seen, and go on where they were", async () => {
    const tabs = [];
    for (let i = 0; i < 7; i++) {
      if (i > 0) await setHidden(tabs[i - 1], true);
      tabs.push(...(await openTabs(1, "ana", "/threads/hotel?tab=timeline", tabs[0])));
      await tabs[i].getByText("Run waits for people").first().waitFor();
    }
    const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", { threadId: "hotel" });
    await server.answer("tom", interrupts[0], { decision: "approved" });
    await tabs[6].getByText(/answered/i).first().waitFor();
    assert.equal(await tabs[0].getByText(/answered/i).count(), 0);
    await setHidden(tabs[0], false);
    await tabs[0].getByText(/answered/i).first().waitFor();
  });
});

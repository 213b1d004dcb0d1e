// The inbox and the question: what a person does all day.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, findViolations, isLong, openPage, Server, takePicture } from "./harness.mjs";

for (const store of ["memory", "sqlite", "redis"]) {
  describe(`answers on ${store}`, () => {
    let server;
    before(async () => (server = await Server.start({ store })));
    after(() => server.stop());

    check("a question that is asked appears, and one that is answered elsewhere goes", async () => {
      const page = await openPage(server, "ana");
      await page.getByText("Nothing to answer").waitFor();
      const train = await server.expense("train", 240);
      await page.getByRole("option", { name: /train/ }).waitFor();
      await server.expense("hotel", 380.5);
      await page.getByRole("option", { name: /hotel/ }).waitFor();
      await page.getByRole("option", { name: /hotel/ }).click();
      await page.getByRole("heading", { name: /hotel/ }).waitFor();
      await Promise.all([page.getByText("Tom: approved").waitFor(), server.answer("tom", train, { decision: "approved" })]); // it is shown for two seconds
      await page.getByRole("option", { name: /train/ }).waitFor({ state: "detached" });
      await page.getByRole("option", { selected: true, name: /hotel/ }).waitFor();
      await page.getByRole("heading", { level: 1, name: /hotel/ }).waitFor();
      assert.deepEqual(page.problems, []);
    });

    check("the keyboard: find, take, decide, fill, answer, undo, answer", async () => {
      await server.expense("laptop", 1840);
      const page = await openPage(server, "ana");
      await page.getByRole("option", { name: /laptop/ }).waitFor();
      const press = (key) => page.keyboard.press(key);
      await press("/");
      await page.keyboard.type("laptop");
      await press("Escape");
      await page.getByRole("heading", { level: 1, name: /laptop/ }).waitFor();
      await press("c");
      await page.getByText("You have it").waitFor();
      await press("1");
      await press("Control+Enter");
      await page.getByText("is missing").waitFor();
      await page.locator("#field--account:focus").waitFor();
      await page.keyboard.type("6600");
      await press("Control+Enter");
      await page.getByText("Your vote is stored").waitFor();

      const ben = await openPage(server, "ben");
      await ben.getByRole("option", { name: /laptop/ }).waitFor();
      await ben.getByRole("option", { name: /laptop/ }).click();
      await ben.getByRole("button", { name: "Agree with Ana" }).focus();
      await ben.keyboard.press("Enter");
      await ben.keyboard.press("Control+Enter");
      await ben.getByText(/takes effect in \d+ s/).first().waitFor();
      await ben.keyboard.press("u");
      await ben.getByText("The question is open again").waitFor();
      await ben.getByRole("option", { name: /laptop/ }).waitFor();
      const { interrupts } = await server.call("ben", "InterruptService/ListInterrupts", { threadId: "laptop" });
      assert.equal(interrupts[0].state, "INTERRUPT_STATE_OPEN");
      assert.deepEqual(ben.problems, []);
    });

    for (const withoutStreams of [true, false]) {
      check(`of two who answer one is told who was first, and keeps what was entered, ${withoutStreams ? "after the answer" : "before it"}`, async () => {
        const thread = withoutStreams ? "chair" : "desk";
        const q = await server.expense(thread, 620);
        const page = await openPage(server, "ana", `/inbox/${thread}/${q.interruptId}`, { withoutStreams });
        await page.getByRole("heading", { level: 1, name: thread }).waitFor();
        await page.getByRole("textbox", { name: /^Remark/ }).first().fill("as every year");
        await page.keyboard.press("Escape");
        await page.keyboard.press("2");
        await server.answer("tom", q, { decision: "approved" });
        if (withoutStreams) await page.keyboard.press("Control+Enter");
        await page.getByText("Tom: approved. Your answer was not stored").waitFor();
        await page.getByRole("heading", { name: "Yours, which is not stored" }).waitFor();
        await page.getByText("as every year").waitFor();
        assert.deepEqual(page.problems, []);
      });
    }

    check("who goes on while an answer is sent stays there", async () => {
      const sent = await server.expense("sent", 610);
      const between = await server.expense("between", 611);
      const other = await server.expense("looked-at", 612);
      const page = await openPage(server, "ana", `/inbox/sent/${sent.interruptId}`);
      await page.getByRole("heading", { level: 1, name: "sent" }).waitFor();
      let deliver;
      const mayArrive = new Promise((resolve) => (deliver = resolve));
      await page.route("**/*GraphService/ResumeRun", async (route) => {
        const response = await route.fetch();
        await mayArrive;
        await route.fulfill({ response });
      });
      await page.keyboard.press("1");
      await page.keyboard.press("Control+Enter");
      await page.getByRole("option", { name: /looked-at/ }).click();
      await page.getByRole("heading", { level: 1, name: "looked-at" }).waitFor();
      deliver();
      await page.getByText(/takes effect in/).first().waitFor();
      await page.getByRole("heading", { level: 1, name: "looked-at" }).waitFor();
      assert.equal(new URL(page.url()).pathname, `/inbox/looked-at/${other.interruptId}`);
      for (const q of [between, other]) await server.answer("ana", q, { decision: "rejected" });
      assert.deepEqual(page.problems, []);
    });

    check("an answer that is taken back before its call has returned is told as taken back", async () => {
      const q = await server.expense("early", 620);
      const page = await openPage(server, "ana", `/inbox/early/${q.interruptId}`);
      await page.getByRole("heading", { level: 1, name: "early" }).waitFor();
      let deliver;
      const mayArrive = new Promise((resolve) => (deliver = resolve));
      await page.route("**/*GraphService/ResumeRun", async (route) => {
        const response = await route.fetch();
        await mayArrive;
        await route.fulfill({ response });
      });
      await page.keyboard.press("1");
      await page.keyboard.press("Control+Enter");
      await page.getByText(/takes effect in/).first().waitFor();
      await page.keyboard.press("u");
      await page.getByText("The question is open again").waitFor();
      const read = page.waitForResponse(/GetInterrupt$/);
      deliver();
      await (await read).finished();
      await page.getByRole("button", { name: "Decline" }).and(page.locator(":enabled")).waitFor(); // nothing is sent any more
      await page.getByText("The question is open again").waitFor();
      await page.getByRole("heading", { level: 1, name: "early" }).waitFor();
      await server.answer("ana", q, { decision: "rejected" });
      assert.deepEqual(page.problems, []);
    });

    check("a server that was killed is behind, and then live again", async (t) => {
      if (store === "memory") return t.skip("a store that ends with its server");
      const page = await openPage(server, "ana");
      await page.getByText("live", { exact: true }).waitFor();
      await server.kill();
      await page.getByText(/behind since/).waitFor();
      await server.serve();
      await server.expense("bike", 900);
      await page.getByRole("option", { name: /bike/ }).waitFor({ timeout: 30_000 });
      await page.getByText("live", { exact: true }).waitFor();
      const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", {});
      await page.waitForFunction((n) => document.querySelectorAll("[role=option]").length === n, interrupts.length);
    });
  });
}

describe("what the screens show", () => {
  let server;
  before(async () => {
    server = await Server.start();
    const laptop = await server.expense("laptop", 1840);
    await server.answer("ben", laptop, { decision: "approved", account: "6600", pay_within_days: 30 });
    await server.expense("train", 240, "Train to Berlin");
    await server.ask("eva", "refund-review", "ticket-1", { user_id: "u1", user_request: "I want a refund for my order 8841" });
    await server.ask("eva", "fields", "fields-1", { given: { a: 1, list: [1, 2, { b: "c" }] } });
  });
  after(() => server.stop());

  // Addresses, and what is seen when they are shown.
  const screens = [
    ["/inbox", "Train to Berlin"], ["/threads", "fields-1"], ["/threads/laptop", "1840"], ["/threads/laptop?tab=timeline", "Run waits for people"],
    ["/threads/laptop?tab=branches", "first input"], ["/threads/laptop?tab=runs", "by Eva"], ["/graphs", "refund-review"], ["/graphs/expense", "Who has spent the money"],
    ["/graphs/expense?tab=nodes", "asks a person"], ["/workers", "No worker is attached"], ["/overview", "Open questions"],
  ];
  const sizes = isLong ? [[1440, 900], [1000, 800], [720, 450], [390, 844]] : [[1440, 900], [390, 844]];
  for (const theme of isLong ? ["light", "dark"] : ["dark"]) {
    for (const [width, height] of sizes) {
      for (const [path, shown] of screens) {
        check(`${path} ${theme} at ${width} has nothing that axe finds`, async () => {
          const page = await openPage(server, "ana", path, { theme, width, height });
          await page.locator("main").getByText(shown).first().waitFor();
          await takePicture(page, `${path.slice(1).replaceAll(/\W/g, "-")}-${theme}-${width}`);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector(".app").scrollWidth <= innerWidth), "nothing sticks out");
          assert.deepEqual(await findViolations(page), []);
          assert.deepEqual(page.problems, []);
        });
      }
    }
  }
});

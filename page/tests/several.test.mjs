// Several questions at once, kept filters, and the palette.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, findViolations, openPage, Server, takePicture } from "./harness.mjs";

describe("several questions", () => {
  let server;
  before(async () => {
    server = await Server.start();
    for (const [thread, amount] of [["train", 240], ["hotel", 380.5], ["chair", 620]]) await server.expense(thread, amount);
    await server.ask("eva", "fields", "fields-1", { given: 1 });
  });
  after(() => server.stop());

  const openOnes = async () => ((await server.call("ana", "InterruptService/ListInterrupts", {})).interrupts ?? []).map((q) => q.threadId).sort();

  check("are chosen by key, answered with one form, and taken back at once", async () => {
    const page = await openPage(server, "ana", "/inbox?q=graph:expense");
    await page.getByRole("option", { name: /chair/ }).waitFor();
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("2 chosen").waitFor();
    await page.getByRole("button", { name: "Answer…" }).click();
    const dialog = page.getByRole("dialog", { name: "Answer 2 questions" });
    await dialog.locator(".decide").getByText("Approved").click();
    await takePicture(page, "bulk");
    assert.deepEqual(await findViolations(page), []);
    await dialog.getByRole("button", { name: "Answer 2 questions" }).click();
    await page.getByText("Approved: 2 questions").waitFor();
    assert.equal((await openOnes()).length, 2);
    await page.getByRole("button", { name: "Undo" }).last().click();
    await page.getByText("Taken back: 2 answers").waitFor();
    assert.deepEqual(await openOnes(), ["chair", "fields-1", "hotel", "train"]);
    assert.deepEqual(page.problems, []);
  });

  check("of which one has another form are not answered together", async () => {
    const page = await openPage(server, "ana");
    await page.getByRole("option", { name: /What shall/ }).click({ modifiers: ["Control"] });
    await page.getByRole("option", { name: /chair/ }).click({ modifiers: ["Control"] });
    await page.getByRole("button", { name: "Answer…" }).click();
    await page.getByText("These questions want different answers").waitFor();
  });

  check("are assigned: one by its key, and several at once, with the reasons of those that are not", async () => {
    const page = await openPage(server, "ana", "/inbox?q=graph:expense");
    await page.getByRole("option", { name: /chair/ }).click();
    await page.keyboard.press("a");
    const one = page.getByRole("dialog", { name: "Assign" });
    await one.getByLabel("team-leads", { exact: true }).check();
    assert.deepEqual(await findViolations(page), []);
    await takePicture(page, "assign");
    await one.getByRole("button", { name: /Assign.*team-leads/ }).click();
    await page.getByText("Assigned to team-leads: chair").waitFor();
    const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", { threadId: "chair" });
    assert.deepEqual(interrupts[0].assignees, ["team-leads"]);

    await server.expense("broken", 150);
    await page.getByRole("option", { name: /broken/ }).click({ modifiers: ["Control"] });
    await page.getByRole("option", { name: /hotel/ }).click({ modifiers: ["Control"] });
    await page.route("**/UpdateInterrupt", (route) => (route.request().postData().includes("broken") ? route.fulfill({ status: 400, json: { code: "failed_precondition", message: "it was answered" } }) : route.continue()));
    await page.getByRole("button", { name: "Assign…" }).click();
    const several = page.getByRole("dialog", { name: "Assign 2 questions" });
    await several.getByLabel(/Other people/).fill("eva, tom");
    await several.getByRole("button", { name: /Assign 2 questions to eva, tom/i }).click();
    await page.getByText("1 is not assigned").waitFor();
    await page.getByRole("dialog", { name: "Assign" }).getByText("it was answered").waitFor();
    assert.deepEqual((await server.call("ana", "InterruptService/ListInterrupts", { threadId: "hotel" })).interrupts[0].assignees, ["eva", "tom"]);
    await page.unroute("**/UpdateInterrupt");
    await page.getByRole("dialog").getByRole("button", { name: /Assign.*eva, tom/i }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual((await server.call("ana", "InterruptService/ListInterrupts", { threadId: "broken" })).interrupts[0].assignees, ["eva", "tom"]);
    assert.deepEqual(page.problems, []);
    await server.answer("ana", (await server.call("ana", "InterruptService/ListInterrupts", { threadId: "broken" })).interrupts[0], { decision: "rejected" });
  });

  check("are put off, shown under is:later, and shown again", async () => {
    const page = await openPage(server, "ana", "/inbox?q=graph:expense");
    await page.getByRole("option", { name: /hotel/ }).click();
    await page.keyboard.press("h");
    await page.getByRole("dialog", { name: "Later" }).getByText("Hidden in this browser").waitFor();
    assert.deepEqual(await findViolations(page), []);
    await takePicture(page, "later");
    await page.getByRole("button", { name: "In 1 hour" }).click();
    await page.getByRole("option", { name: /hotel/ }).waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("option", { name: /chair/ }).waitFor();
    assert.equal(await page.getByRole("option", { name: /hotel/ }).count(), 0);
    await page.getByRole("link", { name: "1 later" }).click();
    await page.getByRole("option", { name: /hotel/ }).click();
    assert.equal(await page.getByRole("option").count(), 1);
    await page.keyboard.press("h");
    await page.getByLabel("Until").fill("2100-01-01T10:00");
    await page.getByText("Want a time in the next 7 days").waitFor();
    await page.getByRole("button", { name: "Show now" }).click();
    await page.getByText("Nothing matches").waitFor();
    await page.evaluate(() => localStorage.setItem("graphd.later", "null"));
    await page.goto(server.url + "/inbox");
    await page.getByRole("option", { name: /hotel/ }).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("of more than one page are chosen by the filter, and answered at once", async () => {
    const before = (await openOnes()).length;
    await Promise.all(Array.from({ length: 120 }, (_, i) => server.expense(`many-${i}`, 200 + i, "many")));
    const page = await openPage(server, "ana", "/inbox?q=graph:expense many");
    await page.getByRole("option", { name: /many/ }).first().click({ modifiers: ["Control"] });
    await page.getByRole("button", { name: /^All/ }).click();
    await page.getByText("120 chosen").waitFor();
    await page.getByRole("button", { name: "Answer…" }).click();
    const dialog = page.getByRole("dialog", { name: "Answer 120 questions" });
    await dialog.getByText("200 to 319, 120 values").waitFor();
    await dialog.locator(".decide").getByText("Rejected").click();
    const { interrupts } = await server.call("ana", "InterruptService/ListInterrupts", { threadId: "many-7" });
    await server.answer("tom", interrupts[0], { decision: "approved" });
    await dialog.getByRole("button", { name: "Answer 120 questions" }).click();
    await page.getByText("1 is not answered").waitFor();
    await page.getByRole("alert").getByRole("link", { name: "many-7" }).waitFor();
    assert.equal((await openOnes()).length, before);
    assert.deepEqual(page.problems, []);
  });

  check("are filtered, and the filter is kept", async () => {
    const page = await openPage(server, "ana");
    await page.getByRole("option", { name: /What shall/ }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("graph:expense");
    await page.getByRole("option", { name: /What shall/ }).waitFor({ state: "detached" });
    await page.getByRole("option", { name: /chair/ }).waitFor();
    await page.getByRole("button", { name: "Keep this filter" }).click();
    await page.reload();
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("option", { name: /What shall/ }).waitFor();
    await page.getByRole("link", { name: "graph:expense" }).click();
    await page.getByRole("option", { name: /What shall/ }).waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type(" color:red");
    await page.getByText(/color: is no filter/).waitFor();
    assert.deepEqual(page.problems, []);
  });

  check("a thread is found by its id, and an action by its words", async () => {
    const page = await openPage(server, "ana");
    await page.getByRole("option", { name: /hotel/ }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("hotel");
    await page.getByRole("option", { name: "hotel expense" }).waitFor();
    assert.deepEqual(await findViolations(page), []);
    await takePicture(page, "palette");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /hotel/ }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("fork");
    await page.getByRole("option", { name: /Fork from here/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Fork from here" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).getByText("fork from here").waitFor();
    assert.deepEqual(await findViolations(page), []);
    assert.deepEqual(page.problems, []);
  });

  check("a browser that tells late that the palette was closed closes nothing else", async () => {
    const page = await openPage(server, "ana");
    await page.getByRole("option", { name: /hotel/ }).waitFor();
    await page.keyboard.press("Control+k");
    const palette = await page.getByRole("dialog", { name: "Find or do" }).elementHandle();
    await page.getByRole("combobox").fill("these keys");
    await page.getByRole("option", { name: /These keys/ }).waitFor();
    await page.keyboard.press("Enter");
    const keys = page.getByRole("dialog", { name: "Keys" });
    await keys.waitFor();
    await palette.evaluate((closed) => closed.dispatchEvent(new Event("close")));
    await page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume))));
    assert.equal(await keys.isVisible(), true);
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "detached" });
    assert.deepEqual(page.problems, []);
  });

  check("who is not known signs in, and what was typed is there", async () => {
    const page = await openPage(server, "stranger");
    await page.getByRole("dialog", { name: "Sign in" }).waitFor();
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Token").fill(server.tokens.ana);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("option", { name: /hotel/ }).click();
    await page.getByRole("textbox", { name: /^Remark/ }).first().fill("half a sentence");
    await page.getByText("live", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    // From here on any call of the page may be the one that asks for another sign-in.
    await page.evaluate(() => sessionStorage.setItem("graphd.token", "expired"));
    await page.keyboard.press("Control+Enter");
    await page.getByLabel("Token").fill(server.tokens.ana);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("textbox", { name: /^Remark/ }).first().inputValue(), "half a sentence");
    await page.getByRole("option", { name: /hotel/ }).waitFor();
    await page.getByRole("button", { name: /^Answer/ }).click();
    await page.getByText(/takes effect in/).first().waitFor();
  });
});

describe("what a caller may do", () => {
  let server;
  before(async () => {
    server = await Server.start({ people: { eva: [], ana: ["finance", "team-leads"], olga: ["team-leads"], vic: ["team-leads"] }, roles: { olga: "answerer", vic: "viewer" } });
  });
  after(() => server.stop());

  for (const [who, offered, missing, why] of [
    ["ana", ["Answer", "Take it", "Assign", "Later"], [], ""],
    ["olga", ["Answer", "Take it", "Assign", "Later"], [], ""], // who hands the own part on
    ["eva", ["Assign", "Later"], ["Answer", "Take it"], /asked for it/],
    ["vic", ["Later"], ["Answer", "Take it", "Assign"], /access denied/],
  ]) {
    check(`is what ${who} is offered`, async () => {
      const q = await server.expense("for-" + who, 240);
      const page = await openPage(server, who, `/inbox/for-${who}/${q.interruptId}`);
      const detail = page.getByRole("region", { name: "Question" });
      for (const name of offered) await detail.getByRole("button", { name: new RegExp("^" + name) }).first().waitFor();
      if (why) await detail.getByText(why).first().waitFor();
      await page.getByRole("tab", { name: "Trail 1" }).waitFor();
      for (const name of missing) assert.equal(await detail.getByRole("button", { name: new RegExp("^" + name) }).count(), 0, name);
      assert.equal(await page.getByLabel("Comment").count(), who === "vic" ? 0 : 1);
      if (who === "olga") {
        await page.keyboard.press("a");
        const dialog = page.getByRole("dialog", { name: "Hand on" });
        await dialog.getByLabel(/Another person/).fill("ana");
        await dialog.getByRole("button", { name: "Hand on to ana" }).click();
        await page.getByText(/Handed to ana/).waitFor();
        assert.deepEqual((await server.call("ana", "InterruptService/ListInterrupts", { threadId: "for-olga" })).interrupts[0].assignees, ["ana"]);
      }
      assert.deepEqual(page.problems, []);
    });
  }
});

describe("a server that knows no callers", () => {
  let server;
  before(async () => (server = await Server.start({ knowsCallers: false })));
  after(() => server.stop());

  check("takes an answer, and says that someone gave it", async () => {
    const q = await server.ask("anyone", "refund-review", "ticket", { user_id: 1, user_request: "I want a refund" });
    const page = await openPage(server, "anyone", `/inbox/ticket/${q.interruptId}`);
    await page.getByText("the server knows no callers").waitFor();
    await page.locator(".decide").getByText("Approved", { exact: true }).click();
    await page.getByRole("button", { name: /^Answer/ }).click();
    await page.getByText("The answer is stored").waitFor();
    await page.getByText("Someone answered: approved").waitFor();
    assert.equal(await page.getByText("not stored").count(), 0);
    assert.deepEqual(page.problems, []);
  });
});

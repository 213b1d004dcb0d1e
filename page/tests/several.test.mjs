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
    await page.evaluate(() => sessionStorage.setItem("graphd.token", "expired"));
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
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

// What readers of the screen are told: roles and names of each screen.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, openPage, Server } from "./harness.mjs";

describe("roles and names", () => {
  let server;
  before(async () => {
    server = await Server.start();
    const laptop = await server.expense("laptop", 1840);
    await server.answer("ben", laptop, { decision: "approved", account: "6600" });
  });
  after(() => server.stop());

  // Screens, and lines that their trees must have.
  const screens = [
    ["/inbox", "Cast your vote", [
      'navigation "Screens"', 'link "Inbox 1"', 'link "Due within the hour"', 'link "Urgent 0"', "main", 'region "Inbox"', 'heading "Inbox"', 'textbox "Filter"', 'listbox "Questions"', "option", 'region "Question"', 'heading "eva asks for 1840 EUR: laptop"',
      'radiogroup "Decision"', 'radio "Approved"', 'textbox "Pay within days optional"', 'textbox "Comment"', 'tab "Trail 2"', 'button "Cast your vote', 'button "Take it', "status",
    ]],
    ["/threads/laptop", "Fork from here", [
      'heading "laptop waits for people"', 'region "Graph"', 'group "Graph expense"', 'button "ask_finance waits, waits for people"', 'tab "State"', 'group "Checkpoints"', 'button "Fork from here', 'link "Answer"',
    ]],
    ["/threads", "laptop", ['link "Inbox 1"', 'heading "Threads"', 'textbox "Find threads"', 'combobox "State"', 'row "Choose laptop', 'checkbox "Choose laptop"', 'link "laptop"']],
    ["/graphs/expense", "Start", ['combobox "Version"', 'textbox "Amount"', 'button "Start"', 'tab "Nodes 4"']],
    ["/overview", "By graph", ['link "Open questions', 'region "Open questions by graph"', 'link "expense"']],
  ];
  for (const [path, shown, wanted] of screens) {
    check(`of ${path}`, async () => {
      const page = await openPage(server, "ana", path);
      await page.locator("main").getByText(shown).first().waitFor();
      await page.locator("main [role=option], main .node, main tbody tr").first().waitFor();
      if (path === "/inbox") await page.getByRole("tab", { name: "Trail 2" }).waitFor();
      const tree = await page.locator("body").ariaSnapshot();
      for (const line of wanted) assert.ok(tree.includes(line), `${line} is not in\n${tree}`);
    });
  }

  check("of the page with large letters, without motion, and with the colours of the system", async () => {
    const page = await openPage(server, "ana", "/inbox", { width: 720, height: 450, deviceScaleFactor: 2, reducedMotion: "reduce", forcedColors: "active" });
    await page.getByRole("option").first().click();
    await page.getByRole("button", { name: /Cast your vote/ }).waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out at 200 %");
    const moving = await page.evaluate(() => document.getAnimations().length);
    assert.equal(moving, 0);
  });
});

// How the questions of the same node were answered before.

import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { check, findViolations, openPage, Server, takePicture } from "./harness.mjs";

describe("like this", () => {
  let server;
  before(async () => {
    server = await Server.start();
    await server.expense("train", 240, "Train to Berlin");
  });
  after(() => server.stop());

  const decide = async (thread, decision) => {
    const question = await server.expense(thread, 240);
    await server.answer("tom", question, { decision });
  };
  const open = async (page) => {
    await page.getByRole("option", { name: /Train to Berlin/ }).click();
    await page.getByRole("tab", { name: /Trail 1/ }).waitFor();
  };

  check("is hidden before the first answer, and then counts decisions", async () => {
    const page = await openPage(server, "tom", "/inbox");
    const said = page.waitForResponse("**/*InterruptService/GetAnswerStatistics");
    await open(page);
    assert.equal((await (await said).json()).answered, undefined);
    assert.equal(await page.getByText("Like this").count(), 0);
    await decide("a", "approved");
    await decide("b", "approved");
    await decide("c", "rejected");
    await page.reload();
    await open(page);
    const like = page.getByRole("region", { name: "Like this" });
    await like.getByText(/half within .* counted by this server since/).waitFor();
    assert.deepEqual(await like.getByRole("listitem").allInnerTexts().then((all) => all.map((t) => t.replaceAll(/\s+/g, " "))), ["Approved 2", "Rejected 1"]);
    await like.scrollIntoViewIfNeeded();
    await takePicture(page, "like-this");
    assert.deepEqual(await findViolations(page), []);
    assert.deepEqual(page.problems, []);
  });
  for (const [theme, width] of [["dark", 1440], ["light", 390]]) {
    check(`has nothing that axe finds, ${theme} at ${width}`, async () => {
      const page = await openPage(server, "tom", "/inbox", { theme, width });
      await open(page);
      const like = page.getByRole("region", { name: "Like this" });
      await like.scrollIntoViewIfNeeded();
      await takePicture(page, `like-this-${theme}-${width}`);
      assert.deepEqual(await findViolations(page), []);
      assert.deepEqual(page.problems, []);
    });
  }
});

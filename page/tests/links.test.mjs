// The page of one question that a link opens. It has no scripts.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { gzipSync } from "node:zlib";
import { check, findPort, findViolations, openPage, Server, takePicture } from "./harness.mjs";

describe("a link", () => {
  const folder = mkdtempSync(join(tmpdir(), "graphd-links-"));
  let server;
  let address;
  before(async () => {
    const keys = join(folder, "keys");
    writeFileSync(keys, "k1: " + Buffer.alloc(32, "k").toString("base64") + "\n", { mode: 0o400 });
    address = "127.0.0.1:" + (await findPort());
    server = await Server.start({ options: ["--link-keys", keys, "--links-address", address] });
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const makeLink = async (question) => {
    const { path } = await server.call("ana", "InterruptService/MakeLink", { threadId: question.threadId, interruptId: question.interruptId });
    return { url: `http://${address}`, path, tokens: {} };
  };

  for (const theme of ["light", "dark"]) {
    for (const width of [1000, 390]) {
      check(`looks like the page, ${theme} at ${width}, and answers without scripts`, async () => {
        const thread = `laptop-${theme}-${width}`;
        const link = await makeLink(await server.expense(thread, 1840));
        const response = await fetch(link.url + link.path);
        const { length } = gzipSync(await response.text(), { level: 9 });
        assert.ok(length < 12 << 10, `${length} bytes gz`);
        const page = await openPage(link, "ana", link.path, { theme, width, height: 844, bypassCSP: true }); // axe is a script
        await page.getByText("1840", { exact: true }).waitFor();
        await page.getByText("approved", { exact: true }).click();
        await takePicture(page, `link-${theme}-${width}`);
        assert.deepEqual(await findViolations(page), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
        const plain = await openPage(link, "ana", link.path, { theme, width, javaScriptEnabled: false });
        await plain.getByText("approved", { exact: true }).click();
        await plain.getByLabel(/account/i).fill("6600");
        await plain.getByRole("button", { name: "Send answer" }).click();
        await plain.getByText("Your answer").first().waitFor();
        await page.goto(link.url + link.path);
        await takePicture(page, `link-voted-${theme}-${width}`);
        assert.deepEqual(await findViolations(page), []);
        assert.deepEqual([...page.problems, ...plain.problems], []);
      });
    }
  }

  check("that is none says so in the same look", async () => {
    const page = await openPage({ url: `http://${address}`, tokens: {} }, "ana", "/a/none", { bypassCSP: true });
    await page.getByRole("heading", { level: 1 }).waitFor();
    await takePicture(page, "link-none");
    assert.deepEqual(await findViolations(page), []);
  });
});

/** The agent as a person uses it: a server, the agent as a process, and its page in Chromium. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient } from "graphd/client";
import { dev } from "graphd/dev";
import { chromium } from "playwright-core";

const here = fileURLToPath(new URL(".", import.meta.url));

function startAgent(server: string) {
  return spawn(process.execPath, ["--import", "tsx", "server.ts"], {
    cwd: here,
    env: { ...process.env, GRAPHD_SERVER: server, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

test("tokens are streamed, and each call of the tool is decided on its own", {
  timeout: 120_000,
}, async () => {
  const server = await dev();
  const agent = startAgent(server.address);
  const ended = once(agent, "exit");
  const url = await Promise.race([
    once(agent.stdout.setEncoding("utf8"), "data").then(([line]) => String(line).trim()),
    ended.then(([code]) => Promise.reject(new Error(`the agent has ended with ${code}`))),
  ]);
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const client = createClient(server.address);
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByLabel("What can I do for you?").fill("Please cancel my orders 7 and 8");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Let me see what I can do.").waitFor();
    await page.getByText("Cancel order 8?").waitFor();
    const open = [];
    for await (const question of client.inbox.list({ graph: "agent-ts" })) open.push(question.message);
    assert.deepEqual(open.sort(), ["Cancel order 7?", "Cancel order 8?"]);
    await page.getByText("Cancel order 7?").getByRole("button", { name: "Approve" }).click();
    await page.getByText("Cancel order 8?").getByRole("button", { name: "Reject" }).click();
    await page.getByText("Order 7 is cancelled.").waitFor();
    const said = await page.locator(".said").allTextContents();
    assert.match(
      said.at(-1) ?? "",
      /^Order 7 is cancelled\. A person has rejected this call .* The customer keeps it\.$/,
    );
  } finally {
    client.close();
    await browser.close();
    agent.kill();
    await ended;
    await server.close();
  }
});

// The chat as a person uses it: a server, the agent as a process of its own, and the page in Chromium.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { chromium } from "playwright-core";

const graphd = process.env.GRAPHD_BIN ?? "graphd";
const python = process.env.PYTHON ?? "python3";
const chromiumPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Starts a program; returns it with the first line that fits of what it says. */
async function start(t, [command, ...args], env = {}, output = "stdout", isFitting = () => true) {
  const stdio = ["pipe", "inherit", "inherit"];
  stdio[output === "stdout" ? 1 : 2] = "pipe";
  const child = spawn(command, args, { cwd: import.meta.dirname, env: { ...process.env, ...env }, stdio });
  t.after(() => child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child[output] })) {
    if (!isFitting(line)) continue;
    child[output].resume();
    return { child, line };
  }
  throw new Error(`${command} ${args.join(" ")} has ended`);
}

/** Starts graphd, the agent and the page; returns the URL of the page, and what lets the model say some words. */
async function startChat(t) {
  const listen = ["--listen", "127.0.0.1:0", "--langgraph", "127.0.0.1:0", "--langgraph-origin", "*"];
  const serve = [graphd, "serve", "--store", "memory", "--log-format", "json", ...listen];
  const server = await start(t, serve, {}, "stderr", (line) => line.includes('"msg":"serving"'));
  const { address, langgraph } = JSON.parse(server.line);
  const agent = await start(t, [python, "gated_agent.py"], { GRAPHD_SERVER: address });
  const page = await start(t, [process.execPath, "serve.mjs"], { GRAPHD_URL: langgraph, PORT: "0" });
  return { url: page.line, allowWords: (count) => agent.child.stdin.write(`${count}\n`) };
}

async function openPage(t, url) {
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox"],
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(url);
  return page;
}

test("tokens, a page that is loaded again, decisions, and another version of a message", async (t) => {
  const { url, allowWords } = await startChat(t);
  const page = await openPage(t, url);
  const button = (name) => page.getByRole("button", { name, exact: true });
  const question = (name) => page.getByRole("region", { name });
  const said = (text) => page.getByText(text, { exact: true });

  await page.getByLabel("Message").fill("My order 4711 arrived broken");
  await button("Send").click();
  allowWords(3);
  await said("I am sorry").waitFor(); // and the model is not done

  await page.reload();
  await said("I am sorry").waitFor();
  allowWords(2);
  await said("I am sorry to hear").waitFor();
  allowWords(1_000_000);
  await question("refund_order 4711").waitFor();

  await page.reload();
  await question("refund_order 4711").waitFor();
  await said("My order 4711 arrived broken").first().waitFor();
  await button("Edit").last().click();
  await page.getByLabel("amount").fill("a lot");
  await button("Approve with changes").click();
  await page.getByText("args/amount: got string, want integer").waitFor();
  await button("Edit").last().click();
  await page.getByLabel("amount").fill("20");
  await button("Approve with changes").click();
  await said("I have refunded 20 EUR for order 4711. Is there anything else I can do for you?").waitFor();

  await button("Edit").click();
  await page.getByLabel("Change the message").fill("Orders 12 and 13 never arrived");
  await page.getByLabel("Change the message").press("Enter");
  await question("refund_order 12").getByRole("button", { name: "Approve" }).click();
  await question("refund_order 13").getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Why?").fill("It has arrived.");
  await question("refund_order 13").getByRole("button", { name: "Reject" }).click();
  const end =
    "I have refunded 18 EUR for order 12. My colleague has decided against the refund. It has arrived.";
  await page.getByText(end).waitFor();
  assert.equal(await page.getByText("4711").count(), 0);

  await page.getByText("2 / 2").waitFor();
  await button("Earlier version").click();
  await page.getByText("I have refunded 20 EUR for order 4711.").last().waitFor();
  await button("Later version").click();
  await page.getByText(end).waitFor();
});

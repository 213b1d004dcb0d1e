// Real servers and a real browser for the tests of the page.

import { spawn, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, "..", "..");
const graphd = process.env.GRAPHD_BIN ?? join(root, "bin", "graphd");
const pictures = process.env.PAGE_PICTURES ?? join(root, ".cache", "page");
const axe = readFileSync(join(here, "..", "node_modules", "axe-core", "axe.min.js"), "utf8");

/** Tests with this are those of make page-test; the others run in make test as well. */
export const isLong = process.env.PAGE_TESTS === "all";
export const long = { skip: isLong ? false : "in make page-test" };

export const people = {
  eva: [],
  tom: ["team-leads"],
  ana: ["finance", "team-leads"],
  ben: ["finance"],
};

/** A server with the graphs of a test, and people who call it by keys. */
export class Server {
  static async start({ store = "memory", options = [], knowsCallers = true, people: known = people, roles = {}, graphs = [] } = {}) {
    const s = new Server();
    s.folder = mkdtempSync(join(tmpdir(), "graphd-page-"));
    s.tokens = {};
    if (knowsCallers) for (const [name, groups] of Object.entries(known)) s.tokens[name] = s.#makeKey(name, groups, roles[name] ?? "admin,answerer,starter");
    if (store === "redis") s.redis = await startRedis(s.folder);
    s.store = { memory: "memory", sqlite: "sqlite:" + join(s.folder, "page.db"), redis: s.redis?.url }[store];
    s.graphs = graphs;
    s.options = [...options, ...(knowsCallers ? ["--api-keys", join(s.folder, "keys.yaml")] : [])];
    await s.serve();
    return s;
  }

  #makeKey(name, groups, role) {
    const flags = groups.flatMap((g) => ["--group", g]);
    return execFileSync(graphd, ["keys", "create", "--file", join(this.folder, "keys.yaml"), "--role", role, "--name", name, ...flags], { stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
  }

  /** Starts the process, on the same addresses when it ran before. */
  async serve() {
    const withPeople = Object.keys(this.tokens).length > 0 ? [join(root, "examples", "expense")] : []; // a server that knows no callers keeps no policy
    const folders = [join(here, "graphs"), join(root, "examples", "refund-review"), ...withPeople, ...this.graphs.map((name) => join(here, name))].flatMap((f) => ["--graphs", f]);
    const listen = ["--listen", this.grpc ?? "127.0.0.1:0", "--http", this.address ?? "127.0.0.1:0"];
    this.process = spawn(graphd, ["serve", "--store", this.store, ...listen, ...folders, ...this.options], { stdio: ["ignore", "ignore", "pipe"] });
    const log = [];
    for await (const line of createInterface({ input: this.process.stderr })) {
      log.push(line);
      const said = line.startsWith("{") ? JSON.parse(line) : {};
      if (said.msg !== "serving") continue;
      this.grpc = said.address;
      this.url = said.http;
      this.address = new URL(said.http).host;
      this.process.stderr.resume();
      return;
    }
    throw new Error("the server did not start:\n" + log.join("\n"));
  }

  async kill() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return; // it has ended by itself
    const gone = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await gone;
  }

  async stop() {
    await this.kill();
    this.redis?.process.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Makes a unary call as a person. */
  async call(who, method, request) {
    const headers = { "Content-Type": "application/json", ...(this.tokens[who] && { Authorization: "Bearer " + this.tokens[who] }) };
    const response = await fetch(`${this.url}/graphd.v1.${method}`, { method: "POST", headers, body: JSON.stringify(request) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method}: ${answer.message}`);
    return answer;
  }

  /** Starts a run that asks, and returns its open question. */
  async ask(who, graph, threadId, input) {
    await this.call(who, "GraphService/StartRun", { run: { graph, threadId, createThread: true, input: { json: JSON.stringify(input) } }, wait: "20s" });
    const { interrupts } = await this.call(who, "InterruptService/ListInterrupts", { threadId });
    return interrupts[0];
  }

  async answer(who, question, value) {
    const responses = [{ interruptId: question.interruptId, value: { json: typeof value === "string" ? value : JSON.stringify(value) } }];
    return this.call(who, "GraphService/ResumeRun", { resume: { threadId: question.threadId, responses } });
  }

  expense(threadId, amount, purpose = threadId) {
    return this.ask("eva", "expense", threadId, { employee: "eva", amount, purpose });
  }
}

async function startRedis(folder) {
  const port = await findPort();
  const process = spawn("redis-server", ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", folder], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: process.stdout })) if (line.includes("Ready to accept connections")) break;
  process.stdout.resume();
  return { process, url: `redis://127.0.0.1:${port}` };
}

export async function findPort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return String(port);
}

let browser;
const opened = new Set();

/** A test that keeps pictures of its pages when it fails, and closes them. */
export function check(name, ...rest) {
  const run = rest.pop();
  test(name, ...rest, async (t) => {
    try {
      await run(t);
    } catch (err) {
      let i = 0;
      for (const page of opened) await takePicture(page, `failed-${name.replaceAll(/\W+/g, "-").slice(0, 60)}-${i++}`).catch(() => undefined);
      throw err;
    } finally {
      for (const page of opened) await page.context().close();
      opened.clear();
    }
  });
}

/** Starts the browser of a test file. */
async function startBrowser() {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--font-render-hinting=none", "--host-resolver-rules=MAP graphd.test 127.0.0.1"],
  });
  return browser;
}

after(() => browser?.close());

/** Opens an address as a person, or in another tab of a browser. The page must not log errors, and must not call other servers. */
export async function openPage(server, who, path = "/inbox", { theme = "light", width = 1440, height = 900, withoutStreams = false, prepare, beside, ...more } = {}) {
  const context = beside?.context() ?? await (await startBrowser()).newContext({ viewport: { width, height }, colorScheme: theme, permissions: ["clipboard-read", "clipboard-write"], ...more });
  const page = await context.newPage();
  opened.add(page);
  page.problems = [];
  page.on("pageerror", (e) => page.problems.push(String(e)));
  page.on("console", (m) => m.type() === "error" && !/Failed to load resource|ERR_/.test(m.text()) && page.problems.push(m.text()));
  page.on("request", (r) => !r.url().startsWith(server.url) && !r.url().startsWith("data:") && page.problems.push("a request to " + r.url()));
  if (withoutStreams) await page.route("**/*InterruptService/WatchInterrupts", (route) => route.abort());
  page.setDefaultTimeout(30_000);
  const token = server.tokens[who];
  await page.goto(server.url + path + (token ? "#t=" + token : ""));
  if (prepare) {
    await prepare(page);
    await page.reload();
    await prepare(page);
  }
  return page;
}

/** Takes a picture, kept as an artifact. */
export async function takePicture(page, name) {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, name + ".png") });
}

/** Returns what axe finds, a line for each violation. */
export async function findViolations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ")).join("; ")}`);
}

/** Writes a file of a test. */
export function writeArtifact(name, text) {
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, name), text);
}

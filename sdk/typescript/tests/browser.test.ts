/** The client in Chromium, over the HTTP facade of a real server. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../src/client/index.js";
import { type DevServer, dev } from "../src/dev/index.js";
import { connect } from "../src/transport/index.js";
import type * as web from "../src/web.js";
import { COUNT, REFUND } from "./graph_documents.js";

/** What the bundle of the page puts on its window. */
declare const graphd: typeof web;

let page: Page;
let browser: Browser;
let site: Server;
let server: DevServer;
let local: Client;

beforeAll(async () => {
  const script = await bundleWeb();
  site = createServer((request, response) => {
    const isScript = request.url === "/graphd.js";
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : "<!doctype html><title>test</title><script src=/graphd.js></script>");
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  server = await dev({ flags: ["--http", "127.0.0.1:0", "--http-origin", origin] });
  local = new Client(connect(server.address, {}, { environment: {} }));
  await local.putGraph(REFUND);
  await local.putGraph(COUNT);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  page = await browser.newPage();
  await page.goto(origin);
});

afterAll(async () => {
  await browser?.close();
  site?.close();
  local?.close();
  await server?.close();
});

/** The web entry as one script, as a bundler makes it for a page. Modules of Node would break it. */
async function bundleWeb(): Promise<string> {
  const output = await build({
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      minify: false,
      lib: { entry: new URL("../src/web.ts", import.meta.url).pathname, name: "graphd", formats: ["iife"] },
    },
  });
  const [bundle] = Array.isArray(output) ? output : [output];
  const chunk = bundle !== undefined && "output" in bundle ? bundle.output[0] : undefined;
  return chunk?.code ?? "";
}

describe("in Chromium", () => {
  test("a run asks, and its question is answered from the inbox", async () => {
    const shown = await page.evaluate(async (baseUrl) => {
      const client = graphd.createBrowserClient({ baseUrl });
      const chunks: unknown[] = [];
      for await (const chunk of client.stream("refund", { request: "7 EUR" }, { threadId: "browser" })) {
        chunks.push(chunk);
      }
      for await (const question of client.inbox.list({ threadId: "browser" })) {
        await client.inbox.answer(question, { decision: "approved" });
      }
      const run = await client.wait("browser");
      return {
        chunks,
        state: run.state,
        values: (await client.getState({ configurable: { thread_id: "browser" } })).values,
      };
    }, server.httpUrl);
    expect(shown).toMatchObject({
      chunks: [{ read: { log: ["read 7 EUR"] } }, { __interrupt__: [{ value: { request: "7 EUR" } }] }],
      state: "succeeded",
      values: { decision: "approved", log: ["read 7 EUR", "review", "closed: approved"] },
    });
  });

  test("a long stream", async () => {
    const left = await page.evaluate(async (baseUrl) => {
      const client = graphd.createBrowserClient({ baseUrl });
      const seen: number[] = [];
      const options = { recursionLimit: 500, streamMode: "values" as const };
      for await (const state of client.stream("count", { left: 200 }, options)) seen.push(state.left);
      return seen;
    }, server.httpUrl);
    expect(left).toEqual(Array.from({ length: 201 }, (_, at) => 200 - at));
  });

  test("errors are of the same classes", async () => {
    const errors = await page.evaluate(async (baseUrl) => {
      const client = graphd.createBrowserClient({ baseUrl });
      const read = async (call: Promise<unknown>) => {
        const error = await call.catch((thrown: unknown) => thrown);
        return graphd.isGraphdError(error) ? [error.name, error.serverReason, error.code] : error;
      };
      const command = new graphd.Command({ resume: 1 });
      return [
        await read(client.getRun("none", "none")),
        await read(client.invoke("refund", command, { threadId: "none" })),
        await read(client.getRun("a", "b c")),
      ];
    }, server.httpUrl);
    expect(errors).toEqual([
      ["NotFoundError", "THREAD_NOT_FOUND", "NOT_FOUND"],
      ["NothingToResumeError", "THREAD_NOT_FOUND", "NOT_FOUND"],
      ["GraphdError", "INVALID_FIELD", "INVALID_ARGUMENT"],
    ]);
  });

  test("leaving a watch ends its request", async () => {
    const change = await page.evaluate(async (baseUrl) => {
      const client = graphd.createBrowserClient({ baseUrl });
      const left = new AbortController();
      const watch = client.inbox.watch({ graph: "refund", threadId: "watched" }, { signal: left.signal });
      const first = watch.next();
      await client.invoke("refund", { request: "w" }, { threadId: "watched" });
      const { value } = await first;
      left.abort();
      const end = await watch.next().catch((error: Error) => error.name);
      return [value?.question.message, end];
    }, server.httpUrl);
    expect(change).toEqual(["Refund: w", "AbortError"]);
  });
});

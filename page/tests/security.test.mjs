// What other sites can make a browser do with the page.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { once } from "node:events";
import { after, before, describe } from "node:test";
import { check, openPage, Server } from "./harness.mjs";

describe("other sites", () => {
  let server, evil, evilUrl;
  before(async () => {
    server = await Server.start({ knowsCallers: false });
    evil = createServer((req, res) => {
      res.setHeader("Content-Type", "text/html");
      res.end(req.url === "/frame" ? `<iframe src="${server.url}/inbox"></iframe>` : `
        <form method="post" enctype="text/plain" action="${server.url}/graphd.v1.GraphService/StartRun"><input name='{"x":"' value='"}'></form><p>hello</p>`);
    }).listen(0, "127.0.0.1");
    await once(evil, "listening");
    evilUrl = `http://localhost:${evil.address().port}`;
  });
  after(async () => {
    evil.closeAllConnections();
    evil.close();
    await server.stop();
  });

  check("can't frame it", async () => {
    const page = await openPage(server, "stranger");
    await page.goto(evilUrl + "/frame");
    await page.waitForTimeout(500);
    assert.ok(!page.frames().some((f) => f.url().startsWith(server.url)), page.frames().map((f) => f.url()).join());
  });

  check("can't call the server, and can't read what it says", async () => {
    const page = await openPage(server, "stranger");
    await page.goto(evilUrl);
    const outcome = await page.evaluate(async (url) => {
      const call = (init) => fetch(url + "/graphd.v1.RegistryService/ListGraphs", { method: "POST", body: "{}", ...init }).then((r) => "status " + r.status, (e) => e.name);
      return [await call({ headers: { "Content-Type": "application/json" } }), await call({ headers: { "Content-Type": "text/plain" } }), await call({ headers: { "Content-Type": "text/plain" }, mode: "no-cors" })];
    }, server.url);
    assert.deepEqual(outcome, ["TypeError", "TypeError", "status 0"]);
    await Promise.all([page.waitForNavigation(), page.evaluate(() => document.forms[0].submit())]);
    assert.match(await page.textContent("body"), /ORIGIN_REFUSED/);
    const { threads } = await server.call("stranger", "ThreadService/ListThreads", {});
    assert.equal(threads, undefined);
  });

  check("can't make their own name lead here", async () => {
    const { port } = new URL(server.url);
    for (const path of ["/inbox", "/assets/page.js", "/graphd.v1.RegistryService/ListGraphs"]) {
      const req = request({ port, path, method: path.startsWith("/graphd") ? "POST" : "GET", headers: { Host: "evil.example", "Content-Type": "application/json" } }).end();
      const [response] = await once(req, "response");
      assert.equal(response.statusCode, 403, path);
      response.resume();
    }
  });

  check("get nothing of the page's: it has no script but its own", async () => {
    const page = await openPage(server, "stranger");
    await page.getByText("Nothing to answer").waitFor();
    const blocked = await page.evaluate(async () => {
      const violations = [];
      addEventListener("securitypolicyviolation", (e) => violations.push(e.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      const image = new Image();
      image.src = "https://evil.example/x.png";
      await fetch("https://evil.example/").catch(() => undefined);
      try {
        new Worker(URL.createObjectURL(new Blob(["postMessage(1)"])));
      } catch {} // some browsers throw, others tell the worker
      await new Promise((r) => setTimeout(r, 300));
      return { violations: [...new Set(violations)].sort(), ran: globalThis.ran ?? false };
    });
    assert.deepEqual(blocked, { violations: ["connect-src", "img-src", "script-src-elem", "worker-src"], ran: false });
  });
});

describe("the licenses of the code of others", () => {
  let server;
  before(async () => (server = await Server.start({ knowsCallers: false })));
  after(() => server.stop());

  check("are opened from the key sheet, as text", async () => {
    const page = await openPage(server, "stranger");
    await page.getByText("Nothing to answer").waitFor();
    await page.keyboard.press("?");
    const [opened] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("link", { name: "Licenses of the code of others" }).click()]);
    await opened.getByText(/Chris Pettitt/).waitFor();
    assert.equal(new URL(opened.url()).pathname, "/assets/licenses.txt");
    assert.equal(await opened.evaluate(() => document.contentType), "text/plain");
    assert.match(page.url(), /inbox$/);
  });
});

describe("in plain text, at another name than localhost", () => {
  let server;
  before(async () => (server = await Server.start({ options: ["--http-host", "graphd.test"] })));
  after(() => server.stop());

  check("questions are answered, and the address of a link is shown", async () => {
    const q = await server.expense("laptop", 620);
    const at = Object.assign(Object.create(server), { url: server.url.replace("127.0.0.1", "graphd.test") });
    const page = await openPage(at, "ana", `/inbox/laptop/${q.interruptId}`);
    await page.getByRole("heading", { level: 1, name: "laptop" }).waitFor();
    assert.equal(await page.evaluate(() => isSecureContext), false);
    await page.keyboard.press("l");
    await page.getByText(`${at.url}/inbox/laptop/${q.interruptId}`).waitFor();
    await page.keyboard.press("m");
    await page.getByRole("textbox", { name: "Comment" }).fill("as last year");
    await page.keyboard.press("Enter");
    await page.locator(".trail").getByText("as last year").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    await page.keyboard.press("Control+Enter");
    await page.getByText(/takes effect in/).first().waitFor();
    assert.deepEqual(page.problems.filter((p) => !p.startsWith("The Cross-Origin-Opener-Policy header has been ignored")), []);
  });
});

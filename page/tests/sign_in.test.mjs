// Signing in at an issuer, and what stays when the session ends.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { check, findPort, findViolations, openPage, Server } from "./harness.mjs";

/** An issuer of OpenID Connect whose person signs in at once. */
async function startIssuer() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const codes = new Map();
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const http = createServer(async (request, response) => {
    const url = new URL(request.url, issuer.url);
    const send = (value) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(value));
    if (url.pathname === "/.well-known/openid-configuration") {
      const at = (path) => issuer.url + path;
      return send({ issuer: issuer.url, authorization_endpoint: at("/authorize"), token_endpoint: at("/token"), jwks_uri: at("/keys") });
    }
    if (url.pathname === "/keys") return send({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1" }] });
    if (url.pathname === "/authorize") {
      const code = randomUUID();
      codes.set(code, url.searchParams);
      const back = new URLSearchParams({ code, state: url.searchParams.get("state") });
      return response.writeHead(302, { Location: `${url.searchParams.get("redirect_uri")}?${back}` }).end();
    }
    let body = "";
    for await (const part of request) body += part;
    const given = new URLSearchParams(body);
    const asked = codes.get(given.get("code"));
    assert.equal(createHash("sha256").update(given.get("code_verifier")).digest("base64url"), asked.get("code_challenge"));
    const exp = Math.floor(Date.now() / 1000) + 60;
    const text = encode({ alg: "ES256", kid: "k1" }) + "." +
      encode({ iss: issuer.url, aud: "page", sub: "1", email: "ana", groups: ["finance", "team-leads"], roles: ["admin", "answerer"], nonce: asked.get("nonce"), exp });
    const signature = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url");
    send({ access_token: "opaque", token_type: "Bearer", id_token: `${text}.${signature}` });
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const issuer = { url: `http://127.0.0.1:${http.address().port}`, stop: () => http.close() };
  return issuer;
}

describe("signing in at an issuer", () => {
  let issuer, server, folder;
  before(async () => {
    issuer = await startIssuer();
    folder = mkdtempSync(join(tmpdir(), "graphd-issuer-"));
    const file = join(folder, "issuers.yaml");
    writeFileSync(file, `issuers: [{ issuer: "${issuer.url}", audiences: [graphd], claims: { name: email, groups: groups, roles: roles } }]`);
    const address = "127.0.0.1:" + (await findPort());
    const options = ["--http", address, "--http-url", "http://" + address, "--http-sign-in-issuer", issuer.url, "--http-sign-in-client", "page", "--token-issuers", file];
    server = await Server.start({ options });
  });
  after(async () => {
    await server.stop();
    issuer.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const others = (page) => page.problems.filter((p) => !p.includes(issuer.url));

  check("a person signs in, comes back to the address, and finds the draft when the session ends", async () => {
    const { interruptId } = await server.expense("laptop", 1840);
    const page = await openPage(server, "nobody", `/inbox/laptop/${interruptId}`);
    const signIn = page.getByRole("button", { name: "Sign in with 127.0.0.1" });
    await signIn.waitFor();
    assert.deepEqual(await findViolations(page), []);
    const before = page.url();
    await signIn.click();
    await page.getByRole("heading", { level: 1, name: /laptop/ }).waitFor();
    assert.equal(page.url(), before);
    const cookies = await page.context().cookies();
    assert.deepEqual(cookies.map((c) => [c.name, c.httpOnly, c.sameSite]), [["graphd-session", true, "Strict"]]);

    await page.keyboard.press("1");
    const account = page.locator("#field--account");
    await account.fill("6600");
    await page.evaluate(() => fetch("/sign-out", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }));
    await page.getByRole("alert").filter({ hasText: "the session has ended" }).waitFor(); // the stream has ended
    await signIn.click();
    await page.getByRole("heading", { level: 1, name: /laptop/ }).waitFor();
    assert.equal(await account.inputValue(), "6600");

    const tab = await page.context().newPage();
    await tab.goto(page.url());
    await tab.getByRole("heading", { level: 1, name: /laptop/ }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn.waitFor();
    await tab.getByRole("button", { name: "Sign in with 127.0.0.1" }).waitFor();
    assert.equal(await tab.getByRole("heading", { level: 1, name: /laptop/ }).count(), 0, "nor in another tab");
    await tab.close();
    assert.deepEqual(await page.context().cookies(), []);
    assert.equal(await page.getByRole("heading", { level: 1, name: /laptop/ }).count(), 0, "nothing of the person is shown");
    assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("graphd.draft."))), []);
    await page.getByLabel("Token").fill(server.tokens.ana);
    await page.getByRole("button", { name: "Sign in with the token" }).click();
    await page.getByRole("heading", { level: 1, name: /laptop/ }).waitFor();
    assert.deepEqual(others(page), []);
  });

  check("a link with the token of another person signs nobody in", async () => {
    const page = await openPage(server, "ben", "/inbox");
    await page.getByRole("button", { name: "Sign in with 127.0.0.1" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  });

  check("who signs in after another person gets a page of their own", async () => {
    const { interruptId } = await server.expense("chair", 1840);
    const page = await openPage(server, "nobody", `/inbox/chair/${interruptId}`);
    const enter = async (who) => {
      await page.getByLabel("Token").fill(server.tokens[who]);
      await page.getByRole("button", { name: "Sign in with the token" }).click();
    };
    await enter("ana");
    const comment = page.getByRole("textbox", { name: "Comment" });
    await comment.fill("of ana");
    await page.evaluate(() => sessionStorage.clear());
    await page.getByRole("button", { name: "Take it" }).dispatchEvent("click"); // the server does not know the caller
    await enter("ben");
    await page.getByText("Ben", { exact: true }).first().waitFor();
    await comment.waitFor();
    assert.equal(await comment.inputValue(), "");
  });
});

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { GraphService } from "../src/_gen/graphd/v1/graph_service_pb.js";
import { RegistryService } from "../src/_gen/graphd/v1/registry_service_pb.js";
import { WorkerService } from "../src/_gen/graphd/v1/worker_service_pb.js";
import { Backoff, type Caller, callOnce, callRepeatedly, Deadline, pauseAfter } from "../src/calls/index.js";
import { dev, findProgram } from "../src/dev/index.js";
import {
  CallTimeoutError,
  InvalidSecurityError,
  NotFoundError,
  ServerUnavailableError,
  TLSError,
  UnauthenticatedError,
} from "../src/errors/index.js";
import { isLoopback } from "../src/transport/address.js";
import { connect, type Security } from "../src/transport/index.js";
import { resolveSecurity } from "../src/transport/security.js";
import { startServer } from "./server.js";

const NO_ENVIRONMENT = { environment: {} };
const { getServerInfo, listGraphs } = RegistryService.method;
const { waitRun, getRun, watch } = GraphService.method;

const folder = mkdtempSync(join(tmpdir(), "graphd-"));
afterAll(() => rmSync(folder, { recursive: true }));

const started = startServer();

describe("calls", () => {
  test("an answer", async () => {
    const info = await started.caller.unary(getServerInfo, {});
    expect(info.store).toBe("memory");
  });

  test("a refusal has its reason, code and metadata", async () => {
    const error = await started.caller
      .unary(getRun, { threadId: "none", runId: "none" })
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({
      reason: "THREAD_NOT_FOUND",
      code: "NOT_FOUND",
      metadata: { threadId: "none" },
    });
  });

  test("a wrong field is named", async () => {
    const error = await started.caller
      .unary(getRun, { threadId: "a b", runId: "none" })
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ reason: "INVALID_FIELD", violations: { thread_id: expect.any(String) } });
  });

  test("a stream that is refused", async () => {
    const iterate = async () => {
      for await (const _ of started.caller.serverStream(watch, { threadId: "none", follow: true }));
    };
    await expect(iterate()).rejects.toMatchObject({ reason: "THREAD_NOT_FOUND" });
  });

  test("a stream in both directions", async () => {
    const answers: unknown[] = [];
    const error = await new Promise<Error | undefined>((resolve) => {
      const duplex = started.caller.openDuplex(WorkerService.method.connect, {
        onMessage: (message) => void answers.push(message.kind.case),
        onEnd: resolve,
      });
      duplex.send({ kind: { case: "hello", value: { workerId: "not a valid id" } } });
    });
    expect(error).toMatchObject({ reason: "INVALID_FIELD", code: "INVALID_ARGUMENT" });
    expect(answers).toEqual([]);
  });

  test("an aborted call throws the reason of its signal", async () => {
    const left = new AbortController();
    const call = started.caller.unary(listGraphs, {}, { signal: left.signal });
    left.abort(new Error("left"));
    await expect(call).rejects.toThrow("left");
    await expect(started.caller.unary(listGraphs, {}, { signal: left.signal })).rejects.toThrow("left");
  });

  test("a call that takes too long", async () => {
    const silent = await dev();
    const { caller } = started;
    const call = callOnce(connect(silent.address), getServerInfo, {}, { deadline: Deadline.after(0.001) });
    await expect(call).rejects.toThrow(CallTimeoutError);
    await silent.close();
    await expect(callOnce(caller, waitRun, { threadId: "none", runId: "r" })).rejects.toThrow(NotFoundError);
    expect(() => Deadline.after(0)).toThrow(/timeout is 0/);
  });

  test("nothing is at the address: a short while of attempts", async () => {
    const gone = await dev();
    await gone.close();
    const caller = connect(gone.address);
    await expect(caller.unary(getServerInfo, {})).rejects.toThrow(ServerUnavailableError);
    const silence =
      /^no graphd answers at [^;]+; is `graphd serve` running there\? Last error: .*ECONNREFUSED[^\n]*[^: ]$/;
    await expect(caller.unary(getServerInfo, {})).rejects.toThrow(silence);
    await expect(caller.serverStream(watch, { threadId: "t" }).next()).rejects.toThrow(silence);
    const patient = callRepeatedly(caller, getServerInfo, {});
    await expect(patient).rejects.toMatchObject({ code: "UNAVAILABLE", serverReason: "" });
  });

  test.each([
    { hasAnswered: false, patience: 5_000 },
    { hasAnswered: true, patience: 30_000 },
  ])(
    "attempts for $patience ms where a server that has answered is $hasAnswered",
    ({ hasAnswered, patience }) => {
      vi.useFakeTimers();
      const began = Date.now();
      const backoff = new Backoff();
      const away = new ServerUnavailableError("away", { code: "UNAVAILABLE" });
      const wait = () => vi.advanceTimersByTime(pauseAfter({ hasAnswered } as Caller, away, backoff, {}));
      expect(() => {
        for (;;) wait();
      }).toThrow(away);
      expect(Date.now() - began).toBe(patience);
      vi.useRealTimers();
    },
  );

  test("a refusal is an answer, and silence is none", async () => {
    const server = await dev();
    const caller = connect(server.address);
    expect(caller.hasAnswered).toBe(false);
    await caller.unary(getRun, { threadId: "none", runId: "none" }).catch(() => {});
    expect(caller.hasAnswered).toBe(true);
    await server.kill();
    const silent = connect(server.address);
    await silent.unary(getServerInfo, {}).catch(() => {});
    expect(silent.hasAnswered).toBe(false);
    caller.close();
    silent.close();
  });

  test("a server that comes back at the same address is found again", async () => {
    const first = await dev();
    const caller = connect(first.address);
    await caller.unary(getServerInfo, {});
    await first.kill();
    const call = callRepeatedly(caller, getServerInfo, {});
    const second = await dev({ port: Number(first.address.split(":")[1]) });
    expect((await call).store).toBe("memory");
    caller.close();
    await second.close();
  });
});

describe("TLS and tokens", () => {
  test("a server with TLS that wants certificates and tokens", async () => {
    execFileSync(findProgram(), ["certs", "--dir", folder, "--client", "alice"], { stdio: "pipe" });
    const path = (name: string) => join(folder, name);
    const server = await dev({
      flags: [
        "--tls-cert",
        path("server.pem"),
        "--tls-key",
        path("server-key.pem"),
        "--tls-client-ca",
        path("ca.pem"),
      ],
    });
    const call = async (security: Security, environment = {}) => {
      const caller = connect(server.address, security, { environment });
      try {
        return await caller.unary(listGraphs, {});
      } finally {
        caller.close();
      }
    };
    const own = { cert: path("client-alice.pem"), key: path("client-alice-key.pem") };
    expect((await call({ ca: path("ca.pem"), ...own })).graphs).toEqual([]);
    const environment = { GRAPHD_TLS_CA: path("ca.pem"), GRAPHD_TLS_CERT: own.cert, GRAPHD_TLS_KEY: own.key };
    expect((await call({}, environment)).graphs).toEqual([]);
    await expect(call({ tls: true })).rejects.toThrow(TLSError);
    await expect(call({ tls: true })).rejects.toThrow(/of another CA: name the file/);
    await expect(call({ ca: path("server-key.pem") })).rejects.toThrow(InvalidSecurityError);
    await expect(call({ ca: path("none.pem") })).rejects.toThrow(/ca .*none\.pem can't be read \(ENOENT\)/);
    await server.close();
  });

  test("plain text at an address with TLS, and the other way round", async () => {
    const caller = connect(started.server.address, { tls: true }, NO_ENVIRONMENT);
    await expect(caller.unary(listGraphs, {})).rejects.toThrow(/does not serve TLS at this address/);
    caller.close();
  });

  test("tokens", async () => {
    const keys = join(folder, "keys.yaml");
    const key = execFileSync(
      findProgram(),
      ["keys", "create", "--file", keys, "--name", "bob", "--role", "viewer"],
      {
        stdio: "pipe",
      },
    );
    const token = key.toString().trim();
    const server = await dev({ flags: ["--api-keys", keys] });
    const file = join(folder, "token");
    writeFileSync(file, `${token}\n`);
    const call = async (security: Security, environment = {}) => {
      const caller = connect(server.address, security, { environment });
      return await caller.unary(listGraphs, {}).finally(() => caller.close());
    };
    await expect(call({})).rejects.toThrow(UnauthenticatedError);
    await expect(call({ token })).resolves.toBeDefined();
    await expect(call({ token: async () => token })).resolves.toBeDefined();
    await expect(call({ tokenFile: file })).resolves.toBeDefined();
    await expect(call({}, { GRAPHD_TOKEN: token })).resolves.toBeDefined();
    await expect(call({ token: "" }, { GRAPHD_TOKEN: token })).rejects.toThrow(UnauthenticatedError);
    await expect(call({ token: () => "" })).rejects.toThrow(/has returned none/);
    await expect(call({ tokenFile: join(folder, "none") })).rejects.toThrow(/ENOENT/);
    await server.close();
  });
});

describe("what can't be right", () => {
  test.each<[string, Security, RegExp]>([
    ["no TLS with a CA", { tls: false, ca: "ca.pem" }, /tls: false and ca contradict/],
    ["a certificate without its key", { cert: "cert.pem" }, /belong together/],
    ["two tokens", { token: "a", tokenFile: "b" }, /contradict/],
    ["a token with a line break", { token: "a\n" }, /line break/],
    ["a tenant that is none", { tenant: "a b" }, /want 1 to 64/],
  ])("%s", (_name, security, problem) => {
    expect(() => connect("127.0.0.1:1", security, NO_ENVIRONMENT)).toThrow(InvalidSecurityError);
    expect(() => connect("127.0.0.1:1", security, NO_ENVIRONMENT)).toThrow(problem);
  });

  test("a token to another host in plain text", () => {
    expect(() => connect("10.0.0.1:7700", { token: "a" }, NO_ENVIRONMENT)).toThrow(/others could read it/);
  });

  test("a URL", () => expect(() => connect("http://localhost:7700")).toThrow(/want host:port/));

  test("a variable that is no truth", () => {
    expect(() => resolveSecurity({}, { GRAPHD_TLS: "perhaps" })).toThrow(/want true or false/);
  });

  test.each([
    ["localhost:1", true],
    ["127.0.0.9:1", true],
    ["[::1]:1", true],
    ["ipv4:127.0.0.1:1,127.0.0.2:1", true],
    ["unix:/run/graphd", true],
    ["ipv4:127.0.0.1:1,10.0.0.1:1", false],
    ["127.0.0.1.example.org:1", false],
    ["dns:///graphd:1", false],
  ])("%s is on this host: %s", (address, is) => expect(isLoopback(address)).toBe(is));

  test.each(["localhost", "graphd.internal", "10.0.0.1", "[::1]"])("%s names no port", (address) => {
    expect(() => connect(address)).toThrow(/names no port: want host:port, like localhost:7700/);
  });
});

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { RegistryService } from "../src/_gen/graphd/v1/registry_service_pb.js";
import { dev, findProgram, MissingProgramError } from "../src/dev/index.js";
import { ServerUnavailableError } from "../src/errors/index.js";
import { connect } from "../src/transport/index.js";

const folder = mkdtempSync(join(tmpdir(), "graphd-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a server of one's own", () => {
  test("serves until it is closed", async () => {
    const server = await dev({ store: `sqlite:${join(folder, "threads.db")}` });
    const caller = connect(server.address, {}, { environment: {} });
    expect((await caller.unary(RegistryService.method.getServerInfo, {})).store).toBe("sqlite");
    expect(server.log()).toContain('"msg":"serving"');
    caller.close();
    await server.close();
    await server.close();
    expect(server.isRunning).toBe(false);
  });

  test("one that does not begin says why", async () => {
    const started = dev({ flags: ["--no-such-flag"] });
    await expect(started).rejects.toThrow(ServerUnavailableError);
    await expect(started).rejects.toThrow(/unknown flag: --no-such-flag/);
  });

  test("the program", () => {
    const script = join(folder, "graphd");
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    expect(() => findProgram({ PATH: folder })).toThrow(MissingProgramError);
    expect(() => findProgram({ PATH: folder })).toThrow(/set GRAPHD_BIN/);
    expect(findProgram({ GRAPHD_BIN: script })).toBe(script);
    expect(() => findProgram({ GRAPHD_BIN: join(folder, "none") })).toThrow(/which is no program/);
    expect(execFileSync(findProgram(), ["version"]).toString()).toMatch(/graphd/);
  });
});

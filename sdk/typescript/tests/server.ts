import { afterAll, beforeAll } from "vitest";
import { type DevOptions, type DevServer, dev } from "../src/dev/index.js";
import { connect } from "../src/transport/index.js";

/** One server for the tests of a file. Its fields are there once tests run. */
export function startServer(options: DevOptions = {}) {
  const started = {} as { server: DevServer; caller: ReturnType<typeof connect> };
  beforeAll(async () => {
    started.server = await dev(options);
    started.caller = connect(started.server.address, {}, { environment: {} });
  });
  afterAll(async () => {
    started.caller?.close();
    await started.server?.close();
  });
  return started;
}

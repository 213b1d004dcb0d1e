/** `graphd/client`: a client for programs on Node that run no nodes themselves. */
import { Client } from "./client/index.js";
import { enclosingRunId } from "./runtime/index.js";
import { connect, type Security, serverOfEnvironment } from "./transport/index.js";

export type ClientOptions = {
  /** How calls are protected, and who calls. */
  security?: Security;
};

/** The server of a client that names none. */
const DEFAULT_SERVER = "127.0.0.1:7700";

/** A client of the server at `host:port`: that of GRAPHD_SERVER, or the one of this machine, without an address. */
export function createClient(server?: string, options: ClientOptions = {}): Client {
  const channel = connect(server ?? (serverOfEnvironment() || DEFAULT_SERVER), options.security);
  return new Client(channel, enclosingRunId);
}

export * from "./client/index.js";
export * from "./errors/index.js";
export type { Security } from "./transport/index.js";
export { Command, Send } from "./values/index.js";

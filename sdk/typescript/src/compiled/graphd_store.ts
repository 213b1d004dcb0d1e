/** The store in the server that a program names, or in the local one. */
import { ItemStore } from "../store/index.js";
import { type Security, serverOfEnvironment } from "../transport/index.js";
import { callerOf, localServer } from "./servers.js";

export type GraphdStoreOptions = {
  /** Where the server is, as `host:port`: that of GRAPHD_SERVER when it is left out, or a local one that ends with this process. */
  server?: string | undefined;
  /** How calls are protected, and who calls. */
  security?: Security | undefined;
  /** Milliseconds that a call may take, repetitions included. */
  timeout?: number | undefined;
};

/** Keeps items in a graphd server: all workers and clients of a tenant share them, and they outlive every process. */
export class GraphdStore extends ItemStore {
  constructor(options: GraphdStoreOptions = {}) {
    const { server, security, timeout } = options;
    const find = async () => callerOf(server || serverOfEnvironment() || (await localServer()), security);
    super(find, timeout);
  }
}

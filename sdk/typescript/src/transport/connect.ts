import { Channel } from "./channel.js";
import { GrpcCaller } from "./grpc_caller.js";
import { resolveSecurity, type Security } from "./security.js";

type Environment = Readonly<Record<string, string | undefined>>;

export type ConnectOptions = {
  /** Where variables like GRAPHD_TOKEN are read; `process.env` when it is left out. */
  environment?: Environment;
};

/**
 * The connection to a server at `host:port`. Throws `InvalidSecurityError` when it must not be called like
 * this; nothing is sent before the first call.
 */
export function connect(address: string, security: Security = {}, options: ConnectOptions = {}): GrpcCaller {
  return new GrpcCaller(new Channel(address, resolveSecurity(security, options.environment ?? process.env)));
}

/** The server that GRAPHD_SERVER names; empty when it does not. */
export function serverOfEnvironment(environment: Environment = process.env): string {
  return environment.GRAPHD_SERVER ?? "";
}

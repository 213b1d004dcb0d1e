import { isIP } from "node:net";
import { InvalidArgumentError, InvalidSecurityError } from "../errors/index.js";
import type { ResolvedSecurity } from "./security.js";

/** Throws when a server must not be called like this. */
export function checkTarget(address: string, security: ResolvedSecurity): void {
  if (address === "" || /^(https?|grpcs?):\/\//.test(address)) {
    const problem = `server is ${JSON.stringify(address)}: want host:port; for TLS see the option security`;
    throw new InvalidArgumentError(problem, { violations: { server: problem } });
  }
  if (/^([\w.-]+|\[[0-9A-Fa-f:.]+\])$/.test(address)) {
    // gRPC would call port 443.
    const problem = `server is ${JSON.stringify(address)}, which names no port: want host:port, like localhost:7700`;
    throw new InvalidArgumentError(problem, { violations: { server: problem } });
  }
  const hasToken = security.token !== "" || security.tokenFile !== "";
  if (hasToken && !security.usesTls && !isLoopback(address)) {
    throw new InvalidSecurityError(
      "token",
      `the token is not sent to ${address} in plain text, where others could read it`,
      "use TLS: name the CA of the server with ca (GRAPHD_TLS_CA), " +
        "or give tls: true (GRAPHD_TLS) when its CA is one of the system",
    );
  }
}

/** Whether all of an address is on this host. */
export function isLoopback(address: string): boolean {
  if (/^unix(-abstract)?:/.test(address)) return true;
  const hosts = address.replace(/^(dns:\/\/\/|dns:|ipv4:|ipv6:)/, "");
  return hosts.split(",").every(isLoopbackHost);
}

function isLoopbackHost(address: string): boolean {
  const [, host] = /^(.*):\d+$/.exec(address) ?? [];
  if (host === undefined) return false;
  const bare = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (bare === "localhost" || bare === "::1") return true;
  return isIP(bare) === 4 && bare.startsWith("127.");
}

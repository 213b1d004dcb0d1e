import { InvalidSecurityError } from "../errors/index.js";

/** Bytes of a token that a server reads. */
const MOST_TOKEN = 16 << 10;
const TENANT = /^[A-Za-z0-9_.:-]{1,64}$/;

/**
 * How calls are protected, and who the caller is. What is left out comes from the environment; an empty
 * text is nothing, whatever the environment says.
 */
export type Security = {
  /**
   * Whether to use TLS (GRAPHD_TLS). Each of `ca`, `cert` and `key` means TLS, too; `true` without `ca` takes
   * the CAs of Node, `false` calls in plain text.
   */
  tls?: boolean;
  /** A PEM file with CAs of servers (GRAPHD_TLS_CA). */
  ca?: string;
  /** PEM files for servers that want a certificate of clients (GRAPHD_TLS_CERT, GRAPHD_TLS_KEY). */
  cert?: string;
  key?: string;
  /** Sent with each call, over TLS or to this host only (GRAPHD_TOKEN). A function is called for each call. */
  token?: string | (() => string | Promise<string>);
  /** A file with the token, which is read again when it changes. */
  tokenFile?: string;
  /** The tenant in which calls are made, one of those that the caller has (GRAPHD_TENANT). */
  tenant?: string;
};

/** A security that is complete: nothing of it comes from elsewhere. */
export type ResolvedSecurity = {
  readonly usesTls: boolean;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly token: string | (() => string | Promise<string>);
  readonly tokenFile: string;
  readonly tenant: string;
};

type Environment = Readonly<Record<string, string | undefined>>;

/** A security with what the environment adds. Throws `InvalidSecurityError` where it contradicts itself. */
export function resolveSecurity(given: Security, environment: Environment): ResolvedSecurity {
  checkSecurity(given);
  const choose = (value: string | undefined, name: string) => value ?? environment[name] ?? "";
  const plain = given.tls === false;
  const ca = plain ? "" : choose(given.ca, "GRAPHD_TLS_CA");
  const cert = plain ? "" : choose(given.cert, "GRAPHD_TLS_CERT");
  const key = plain ? "" : choose(given.key, "GRAPHD_TLS_KEY");
  const tls = given.tls ?? readFlag("GRAPHD_TLS", environment);
  const token = given.token ?? (given.tokenFile ? "" : (environment.GRAPHD_TOKEN ?? ""));
  const resolved = {
    usesTls: tls || ca !== "" || cert !== "" || key !== "",
    ca,
    cert,
    key,
    token,
    tokenFile: given.tokenFile ?? "",
    tenant: choose(given.tenant, "GRAPHD_TENANT"),
  };
  checkSecurity(resolved);
  if ((cert === "") !== (key === "")) {
    throw new InvalidSecurityError(
      cert ? "key" : "cert",
      "cert and key (GRAPHD_TLS_CERT and GRAPHD_TLS_KEY) belong together, and one is missing",
      "give both, or neither for a server that wants no certificate of clients",
    );
  }
  return resolved;
}

function checkSecurity(given: Security): void {
  for (const name of ["ca", "cert", "key"] as const) {
    if (given.tls === false && given[name]) {
      throw new InvalidSecurityError(
        name,
        `tls: false and ${name} contradict each other`,
        "leave one of them out",
      );
    }
  }
  if (given.token && given.tokenFile) {
    throw new InvalidSecurityError(
      "tokenFile",
      "token and tokenFile contradict each other",
      "leave one of them out",
    );
  }
  if (typeof given.token === "string") checkToken("token", given.token);
  if (given.tenant && !TENANT.test(given.tenant)) {
    throw new InvalidSecurityError(
      "tenant",
      `tenant is ${JSON.stringify(given.tenant)}`,
      "want 1 to 64 of A-Z a-z 0-9 _ . : -",
    );
  }
}

/** Throws `InvalidSecurityError`, without the token, when a header can't carry it. */
export function checkToken(option: string, token: string): void {
  if (token.length > MOST_TOKEN) {
    throw new InvalidSecurityError(
      option,
      `${option} has ${token.length} characters`,
      `want at most ${MOST_TOKEN}, as servers do`,
    );
  }
  if (/[^\x21-\x7e]/.test(token)) {
    throw new InvalidSecurityError(
      option,
      `${option} has a space or a character that a header can't carry`,
      "want letters, digits and punctuation of ASCII, without a line break",
    );
  }
}

/** Reads a variable as the commands of graphd do. */
function readFlag(name: string, environment: Environment): boolean {
  const text = environment[name] ?? "";
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  if (["", "0", "f", "F", "false", "FALSE", "False"].includes(text)) return false;
  throw new InvalidSecurityError("tls", `${name} is ${JSON.stringify(text)}`, "want true or false");
}

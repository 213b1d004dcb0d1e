import { readFile } from "node:fs/promises";
import { GraphdError, UnauthenticatedError } from "../errors/index.js";
import { checkToken, type ResolvedSecurity } from "./security.js";

/** Characters of a file; a token is shorter, and may have space around it. */
const LARGEST = 64 << 10;
/** Milliseconds between two looks at a file. */
const INTERVAL = 1_000;

/** What returns the token of a call, and throws `UnauthenticatedError` when there is none. */
export type ReadToken = () => string | Promise<string>;

/** `undefined` for calls without a token. */
export function openToken(security: ResolvedSecurity): ReadToken | undefined {
  if (security.tokenFile) {
    const file = new TokenFile(security.tokenFile);
    return () => file.read();
  }
  const { token } = security;
  if (typeof token === "function") return () => callFunction(token);
  return token ? () => token : undefined;
}

/** Calls the function of a program. Its error is the cause and not in the text: it may name secrets. */
async function callFunction(read: () => string | Promise<string>): Promise<string> {
  let token: unknown;
  try {
    token = await read();
  } catch (error) {
    throw refuse("the function of the token has failed", error);
  }
  if (typeof token !== "string" || token === "") {
    throw refuse("the function of the token has returned none: want a text");
  }
  return checked("token", token);
}

function checked(option: string, token: string): string {
  try {
    checkToken(option, token);
  } catch (error) {
    throw refuse((error as Error).message);
  }
  return token;
}

function refuse(problem: string, cause?: unknown): UnauthenticatedError {
  return new UnauthenticatedError(problem, { code: "UNAUTHENTICATED", cause });
}

/** A file with a token, which may change. */
class TokenFile {
  private token = "";
  private looked = Number.NEGATIVE_INFINITY;

  constructor(private readonly path: string) {}

  /** The token that the file had a second ago at most. When it can't be read, the one before stays in use. */
  async read(): Promise<string> {
    if (this.token && performance.now() - this.looked < INTERVAL) return this.token;
    this.looked = performance.now();
    try {
      this.token = await this.readFile();
    } catch (error) {
      if (!this.token || !(error instanceof GraphdError)) throw error;
    }
    return this.token;
  }

  private async readFile(): Promise<string> {
    const text = await readFile(this.path, "utf8").catch((error: NodeJS.ErrnoException) => {
      throw refuse(`tokenFile ${this.path}: ${error.code}`);
    });
    const token = text.trim();
    if (token === "") throw refuse(`tokenFile ${this.path}: the file is empty`);
    if (token.length > LARGEST)
      throw refuse(`tokenFile ${this.path}: the file has more than ${LARGEST} characters`);
    return checked(`tokenFile ${this.path}`, token);
  }
}

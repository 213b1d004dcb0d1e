import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { BaseLangGraphError } from "../errors/index.js";

const PROGRAM = process.platform === "win32" ? "graphd.exe" : "graphd";

/** There is no graphd to run. The message says where it was looked for, and what helps. */
export class MissingProgramError extends BaseLangGraphError {
  static override get unminifiable_name(): string {
    return "MissingProgramError";
  }
}

/** The program graphd: the file that $GRAPHD_BIN names, or the one on the PATH. */
export function findProgram(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const named = environment.GRAPHD_BIN;
  if (named) {
    if (isProgram(named)) return named;
    throw new MissingProgramError(
      `GRAPHD_BIN is ${JSON.stringify(named)}, which is no program: name a graphd, or unset it`,
    );
  }
  const found = (environment.PATH ?? "")
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, PROGRAM))
    .find((path) => isProgram(path) && !isScript(path));
  if (found !== undefined) return found;
  throw new MissingProgramError(
    "there is no graphd on the PATH: install it, or set GRAPHD_BIN to its path; " +
      'a server elsewhere needs none: compile({ server: "host:port" })',
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Whether a file is a script, like the one of the Python SDK, which would start another program. */
function isScript(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(2);
    readSync(file, head);
    return head.toString("latin1") === "#!";
  } finally {
    closeSync(file);
  }
}

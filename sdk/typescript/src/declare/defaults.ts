/** Defaults of keys. They are a part of the graph: the same for all threads, and of one version in all processes. */
import type { DeclaredKey } from "../state/index.js";
import { refuseGraph } from "./nodes.js";

/** Throws for a default that is another one each time, such as a UUID or the time. */
export function checkDefaults(keys: ReadonlyMap<string, DeclaredKey>): void {
  for (const key of keys.values()) {
    if (isConstant(key)) continue;
    throw refuseGraph(
      `the default of "${key.name}" is another one each time, and all threads have the same default: ` +
        "write the value in the first node, or put it into the input",
    );
  }
}

function isConstant(key: DeclaredKey): boolean {
  const first = writeDefault(key);
  if (first === undefined) return true;
  if (MAY_BE_TIME.test(first)) waitForClock();
  return writeDefault(key) === first;
}

const MAY_BE_TIME = /\d{10}|\d:\d\d/;

/** The JSON text of a default; `undefined` for none, and for one that can't be written, which the first call tells. */
function writeDefault(key: DeclaredKey): string | undefined {
  const { initial } = key.declaration;
  try {
    return initial && key.write(initial());
  } catch {
    return undefined;
  }
}

/** Until the next millisecond. */
function waitForClock(): void {
  const now = Date.now();
  while (Date.now() === now);
}

/** What of a call travels to its nodes: the context, and the config within it. */
import { decode, encode } from "../codec/index.js";

/** Key of the context on the wire below which the config of the caller travels. */
const CONFIGURABLE = "__configurable__";
/** Key that marks the context of a graph which a node has called with its own. */
const CALLED = "__called__";

const OF_THE_CALL = new Set(["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"]);

export type WireContext = {
  context: Record<string, unknown> | undefined;
  configurable: Record<string, unknown>;
  isCalled: boolean;
};

/** JSON text of the context of a run, and of what else of the config nodes see; none when that is nothing. */
export function writeWireContext(
  context: unknown,
  configurable: Readonly<Record<string, unknown>>,
  isCalled = false,
): string | undefined {
  const carried = pickStorable(typeof context === "object" && context !== null ? context : {});
  const own = Object.entries(configurable).filter(([key]) => !OF_THE_CALL.has(key) && !key.startsWith("__"));
  const seen = pickStorable(Object.fromEntries(own));
  if (seen.length > 0) carried.push(`"${CONFIGURABLE}":{${seen.join(",")}}`);
  if (isCalled && carried.length > 0) carried.push(`"${CALLED}":true`);
  return carried.length === 0 ? undefined : `{${carried.join(",")}}`;
}

/** Connections and the like stay in the process. */
function pickStorable(fields: object): string[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined) return [];
    try {
      return [`${JSON.stringify(key)}:${encode(value)}`];
    } catch {
      return [];
    }
  });
}

/** What has arrived with a task; nothing if it is of another shape. */
export function readWireContext(text: string | undefined): WireContext {
  const value = text === undefined ? undefined : decode(text, { unsafe: "bigint" });
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { context: undefined, configurable: {}, isCalled: false };
  }
  const { [CONFIGURABLE]: configurable = {}, [CALLED]: called, ...context } = value as Record<string, any>;
  return {
    context: Object.keys(context).length === 0 ? undefined : context,
    configurable,
    isCalled: called !== undefined,
  };
}

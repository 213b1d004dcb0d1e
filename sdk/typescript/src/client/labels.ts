import { createId } from "../calls/index.js";
import { decode, encode } from "../codec/index.js";
import { PLACE_KEYS, type RunConfig } from "./config.js";

/** Names the labels that are no texts; the Python SDK has the same. */
const TYPED = "graphd.typed";
/** Marks what one call with `durability: "exit"` has stored; see folded_history.ts. */
export const EXIT = "graphd.exit";

/** The labels of a run: its metadata and the scalars of its config. The server keeps texts. */
export function toLabels(config: RunConfig): Record<string, string> {
  const scalars = Object.entries(config.configurable ?? {}).filter(
    ([key, value]) => !PLACE_KEYS.has(key) && !key.startsWith("__") && isScalar(value),
  );
  const metadata = Object.entries(config.metadata ?? {}).filter(
    ([key, value]) => !key.startsWith("__") && value !== undefined,
  );
  const given = Object.fromEntries([...scalars, ...metadata]);
  if (config.runId !== undefined) given.run_id ??= config.runId;
  const typed = Object.keys(given).filter((key) => typeof given[key] !== "string");
  const labels = Object.entries(given).map(([key, value]) => [
    key,
    typeof value === "string" ? value : encode(value),
  ]);
  return { ...Object.fromEntries(labels), ...(typed.length > 0 ? { [TYPED]: typed.sort().join(",") } : {}) };
}

/** The metadata that was stored as labels. */
export function fromLabels(labels: Readonly<Record<string, string>>): Record<string, unknown> {
  const typed = new Set((labels[TYPED] ?? "").split(","));
  const own = Object.entries(labels).filter(([key]) => key !== TYPED && key !== EXIT);
  return Object.fromEntries(own.map(([key, text]) => [key, typed.has(key) ? decode(text) : text]));
}

/** The labels of one call. */
export function callLabels(config: RunConfig): Record<string, string> {
  return { ...toLabels(config), ...(config.durability === "exit" ? { [EXIT]: createId() } : {}) };
}

function isScalar(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

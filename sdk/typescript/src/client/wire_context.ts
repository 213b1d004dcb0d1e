import { encode, UnstorableValueError } from "../codec/index.js";
import { PLACE_KEYS } from "./config.js";
import { isObject } from "./stream_modes.js";

/** Key of the context on the wire below which the config of the caller travels. */
export const CONFIGURABLE = "__configurable__";

/**
 * The context of a run, and with it what else of the config nodes can see; `undefined` when there is none.
 * What has no JSON form, like a connection, stays in this process.
 */
export function buildWireContext(context: unknown, configurable: Record<string, unknown> = {}): unknown {
  const carried: Record<string, unknown> = isObject(context) ? keepStorable(context) : {};
  const seen = Object.entries(configurable).filter(([key]) => !PLACE_KEYS.has(key) && !key.startsWith("__"));
  const storable = keepStorable(Object.fromEntries(seen));
  if (Object.keys(storable).length > 0) carried[CONFIGURABLE] = storable;
  return Object.keys(carried).length > 0 ? carried : undefined;
}

function keepStorable(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isStorable(value)));
}

function isStorable(value: unknown): boolean {
  try {
    encode(value);
    return true;
  } catch (error) {
    if (error instanceof UnstorableValueError) return false;
    throw error;
  }
}

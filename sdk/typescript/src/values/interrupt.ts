/** Questions as callers see them. */
import { INTERRUPT } from "../constants.js";

/** One open question, and the id to answer it by. */
export type Interrupt<Value = any> = {
  id?: string;
  value?: Value;
  /** JSON Schema of its answers; absent when any value is one. */
  response_schema?: unknown;
  /** Id of the question whose answer was not used, because the node asked something else. */
  replaces?: string;
  /** JSON pointers to what differs from that question. */
  differs?: string[];
};

/** Whether a result or a chunk says that people are asked. */
export function isInterrupted<Value = unknown>(
  values: unknown,
): values is { [INTERRUPT]: Interrupt<Value>[] } {
  if (typeof values !== "object" || values === null || !(INTERRUPT in values)) return false;
  return Array.isArray((values as Record<string, unknown>)[INTERRUPT]);
}

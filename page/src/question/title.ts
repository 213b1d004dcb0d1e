// The title of a question and the text under it.

import type { Interrupt } from "../api/messages";
import { toTitle } from "../form/schema";
import { JsonObject, type Json, readPayload } from "../json/value";

const longestTitle = 160;

/** Returns the first line of the message; else what the node is about. */
export function titleOf(q: Interrupt): string {
  if (q.reason === "breakpoint") return `Breakpoint ${readStop(q)} ${q.node ?? ""}`;
  const [line] = splitMessage(q);
  if (line !== "") return line;
  const value = tryRead(q.value);
  if (typeof value === "string" && value !== "") return shorten(value.split("\n", 1)[0]!);
  if (value instanceof JsonObject) {
    for (const name of ["question", "title", "message", "task", "action"]) {
      const text = value.get(name);
      if (typeof text === "string" && text !== "") return shorten(text.split("\n", 1)[0]!);
    }
  }
  return toTitle(q.node ?? "Question");
}

/** Returns the message without its first line, when that is the title. */
export function bodyOf(q: Interrupt): string {
  const [, body] = splitMessage(q);
  return body;
}

function splitMessage(q: Interrupt): [string, string] {
  const message = (q.message ?? "").trim();
  const end = message.indexOf("\n");
  const first = (end < 0 ? message : message.slice(0, end)).trim().replace(/^#+ +/, "").replaceAll("**", "");
  if (first.length <= longestTitle) return [first, end < 0 ? "" : message.slice(end + 1).trim()];
  return [shorten(first), message];
}

function shorten(text: string): string {
  const letters = [...text];
  return letters.length <= longestTitle ? text : letters.slice(0, longestTitle).join("") + "…";
}

function readStop(q: Interrupt): string {
  const value = tryRead(q.value);
  return value instanceof JsonObject && value.get("when") === "after" ? "after" : "before";
}

function tryRead(payload: { json?: string } | undefined): Json | undefined {
  try {
    return readPayload(payload);
  } catch {
    return undefined;
  }
}

/** Tells whether a value is what stands for a secret part. */
export function isSecret(value: Json): boolean {
  return value instanceof JsonObject && value.members.length === 1 && value.get("__redacted__") === true;
}


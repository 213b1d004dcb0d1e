/** Digests of what a question shows: an answer is for a question with the same one. */
import { createHash } from "node:crypto";
import { type CanonicalValue, parseExactly, writeCanonical } from "./canonical_json.js";
import { hideParts, removeParts } from "./pointers.js";

/** The JSON texts of a question. */
export type Shown = { value: string; message: string; schema: string | undefined };

/** What a question shows, without the parts that may differ, in its form. */
export function canonicalForm(
  shown: Shown,
  ignore: readonly string[],
  secret: readonly string[] = [],
): string {
  const parts: Record<string, CanonicalValue> = {};
  if (!ignore.includes("message")) parts.message = shown.message;
  if (shown.schema !== undefined && !ignore.includes("schema")) parts.schema = parseExactly(shown.schema);
  if (!ignore.includes("value")) {
    const { value } = hideParts(parseExactly(shown.value), secret);
    removeParts(value, ignore);
    parts.value = value;
  }
  return writeCanonical(parts);
}

export function digestShown(shown: Shown, ignore: readonly string[], secret: readonly string[] = []): string {
  return digest(canonicalForm(shown, ignore, secret));
}

/** The digest of a value with its secret parts, for the question of an id; empty when nothing in it is secret. */
export function digestSecrets(
  id: string,
  value: string,
  ignore: readonly string[],
  secret: readonly string[],
): string {
  if (secret.length === 0 || !hideParts(parseExactly(value), secret).found) return "";
  return digest(`${id}\n${canonicalForm({ value, message: "", schema: undefined }, ignore)}`);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The digests of questions are those of the server, and of the other SDKs. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { canonicalForm, digestSecrets, digestShown } from "../src/runtime/digest.js";

type Vector = {
  name: string;
  value: string;
  message: string;
  schema: string;
  ignore: string[];
  secret?: string[];
  interrupt_id?: string;
  shown: string;
  seen: string;
  secret_seen?: string;
};

const file = new URL("../../../docs/seen-vectors.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vector[];

test.each(vectors)("$name", ({ value, message, schema, ignore, secret = [], ...vector }) => {
  const shown = { value, message, schema: schema || undefined };
  expect(canonicalForm(shown, ignore, secret)).toBe(vector.shown);
  expect(digestShown(shown, ignore, secret)).toBe(vector.seen);
  expect(digestSecrets(vector.interrupt_id ?? "", value, ignore, secret)).toBe(vector.secret_seen ?? "");
});

// A question as JSON.

import type { ComponentChildren } from "preact";
import type { Interrupt } from "../api/messages";
import { type Json, JsonObject, printJson, readPayload } from "../json/value";
import { Text } from "../text/marks";

export function RawView({ question: q, value }: { question: Interrupt; value: Json | undefined }): ComponentChildren {
  const schema = readPayload(q.responseSchema);
  const parts: [string, Json][] = [["interruptId", q.interruptId ?? ""], ["threadId", q.threadId ?? ""]];
  if (value !== undefined) parts.push(["value", value]);
  if (schema !== undefined) parts.push(["responseSchema", schema]);
  return <pre tabIndex={0}><Text of={printJson(new JsonObject(parts), "  ")} /></pre>;
}

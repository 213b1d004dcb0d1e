// What became of a question, in words.

import type { Interrupt } from "../api/messages";
import { toTitle } from "../form/schema";
import { type Json, JsonObject, readPayload, printJson } from "../json/value";
import { shortName } from "../text/people";

/** Returns the decision of an answer in a word: "Approved". */
export function describeAnswer(answer: Json | undefined): string {
  if (answer === undefined) return "Declined to answer";
  const decision = answer instanceof JsonObject ? answer.get("decision") ?? answer.get("type") ?? answer.get("action") ?? answer.get("approved") : answer;
  if (typeof decision === "string") return toTitle(decision).slice(0, 60);
  if (decision === true) return "Yes";
  if (decision === false) return "No";
  const text = printJson(answer);
  return text.length > 60 ? text.slice(0, 60) + "…" : text;
}

export function describeOutcome(q: Interrupt): string {
  const who = q.responder ? shortName(q.responder) : "";
  switch (q.state) {
    case "INTERRUPT_STATE_ANSWERED":
    case "INTERRUPT_STATE_CONSUMED": {
      const what = q.dismissed ? "declined to answer" : describeAnswer(readPayload(q.response)).toLowerCase();
      return who ? `${who}: ${what}` : `Answered: ${what}`;
    }
    case "INTERRUPT_STATE_EXPIRED":
      return "No answer came in time";
    case "INTERRUPT_STATE_CANCELLED":
      return "The run was cancelled";
    case "INTERRUPT_STATE_SUPERSEDED":
      return "Asked anew, or no longer needed";
  }
  return "Is for others now";
}

export type Tone = "yes" | "no" | "mid";

/** Returns the colour of a decision: of words that agree or refuse. */
export function toneOf(value: Json | undefined): Tone {
  const word = typeof value === "string" ? value.toLowerCase() : value === true ? "yes" : value === false ? "no" : "";
  if (/^(approved?|yes|accept(ed)?|allow(ed)?|ok|confirm(ed)?|agree|continue|go)$/.test(word)) return "yes";
  if (/^(reject(ed)?|no|den(y|ied)|declined?|cancel(led)?|refused?|stop|abort)$/.test(word)) return "no";
  return "mid";
}

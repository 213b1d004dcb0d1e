// Which field of an answer is the decision: it becomes the large buttons.

import { type Field, initialValue, type Option } from "../form/schema";
import { type Json, JsonObject } from "../json/value";

export interface Decision {
  /** Name of the member, "" when the answer itself is the decision. */
  name: string;
  options: readonly Option[];
}

const names = ["decision", "action", "type", "approved", "approve", "answer", "ok"];
const mostOptions = 9; // there are nine keys

/** Returns undefined for an answer without a decision. */
export function findDecision(form: Field): Decision | undefined {
  const options = optionsOf(form);
  if (options) return { name: "", options };
  if (form.kind !== "group") return undefined;
  const choices = form.members.filter((m) => m.isRequired && optionsOf(m.field));
  const chosen = choices.find((m) => names.includes(m.name)) ?? (choices.length === 1 ? choices[0] : undefined);
  return chosen && { name: chosen.name, options: optionsOf(chosen.field)! };
}

function optionsOf(field: Field): readonly Option[] | undefined {
  if (field.kind === "switch") return [{ value: true, title: "Yes" }, { value: false, title: "No" }];
  return field.kind === "choice" && field.options.length <= mostOptions ? field.options : undefined;
}

export function decidedValue(decision: Decision, answer: Json | undefined): Json | undefined {
  if (decision.name === "") return answer;
  return answer instanceof JsonObject ? answer.get(decision.name) : undefined;
}

export function decide(decision: Decision, answer: Json | undefined, value: Json): Json {
  if (decision.name === "") return value;
  return (answer instanceof JsonObject ? answer : new JsonObject()).with(decision.name, value);
}

/** Returns the answer with which a form begins: nothing is decided yet. */
export function beginAnswer(form: Field, decision: Decision | undefined): Json | undefined {
  const value = initialValue(form);
  if (!decision) return value;
  if (decision.name === "") return undefined;
  return value instanceof JsonObject ? value.with(decision.name, undefined) : value;
}

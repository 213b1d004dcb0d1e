/** Lets a person decide about every call of a tool. */
import { interrupt } from "../runtime/index.js";
import type { HumanInterrupt, HumanInterruptConfig } from "./human_interrupt.js";
import { createToolMessage, type Tool, type ToolCall } from "./tool_calls.js";

const RIGHTS: Record<string, keyof HumanInterruptConfig> = {
  accept: "allow_accept",
  edit: "allow_edit",
  response: "allow_respond",
  ignore: "allow_ignore",
};

const ALL: HumanInterruptConfig = {
  allow_accept: true,
  allow_edit: true,
  allow_respond: true,
  allow_ignore: true,
};

export type ReviewOptions = { interruptConfig?: HumanInterruptConfig; description?: string };

type Decision = { type: string; args?: unknown };

/**
 * The same tool, asking a person before it does anything. The answer is `{ type: "accept" }`,
 * `{ type: "edit", args: { args: {…} } }`, `{ type: "response", args: "text" }` or `{ type: "ignore" }`, alone or in a
 * list of one.
 */
export function addHumanInTheLoop<T extends Tool>(tool: T, options: ReviewOptions = {}): T {
  const { interruptConfig = ALL, description = "Please review the tool call" } = options;
  const invoke = async (given: ToolCall, config?: unknown): Promise<unknown> => {
    const isCall = given?.type === "tool_call";
    const args = isCall ? given.args : (given as Record<string, unknown>);
    const decision = askReviewer(tool.name, args, interruptConfig, description);
    const run = (changed: Record<string, unknown>) =>
      tool.invoke(isCall ? { ...given, args: changed } : changed, config);
    switch (decision.type) {
      case "accept":
        return await run(args);
      case "edit":
        return await run(readEdit(decision.args));
      case "response":
        return isCall ? createToolMessage(given, decision.args, "success") : decision.args;
      default: {
        const text = `The call of ${tool.name} was ignored by the user.`;
        return isCall ? createToolMessage(given, text, "success") : text;
      }
    }
  };
  return Object.assign(Object.create(tool) as T, { invoke });
}

function askReviewer(
  action: string,
  args: Record<string, unknown>,
  config: HumanInterruptConfig,
  description: string,
): Decision {
  const question: HumanInterrupt = { action_request: { action, args }, config, description };
  const message = `${description}: ${action}`;
  const responseSchema = buildAnswerSchema(config);
  const answer: Decision | Decision[] = interrupt(question, { reason: "approval", message, responseSchema });
  return Array.isArray(answer) ? (answer[0] as Decision) : answer;
}

/** What an answer must look like: the server refuses others, and the question stays open. */
function buildAnswerSchema(config: HumanInterruptConfig): Record<string, unknown> {
  const kinds = Object.entries(RIGHTS).flatMap(([kind, right]) => (config[right] === true ? [kind] : []));
  const one = {
    type: "object",
    required: ["type"],
    properties: { type: { enum: kinds }, args: {} },
    if: { properties: { type: { const: "edit" } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { required: ["args"], properties: { args: { type: "object" } } },
  };
  // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
  return { if: { type: "array" }, then: { minItems: 1, maxItems: 1, items: one }, else: one };
}

function readEdit(args: unknown): Record<string, unknown> {
  const edited = args as { args?: unknown };
  const isWhole = typeof edited.args === "object" && edited.args !== null;
  return (isWhole ? edited.args : edited) as Record<string, unknown>;
}

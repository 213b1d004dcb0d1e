/** Asks people about calls of tools, one question for each call. */
import { InvalidArgumentError } from "../errors/index.js";
import { interrupt } from "../runtime/index.js";
import { checkQuestionOptions } from "../runtime/question_options.js";
import { readResponseSchema } from "../runtime/response_schema.js";
import type { InterruptOptions } from "../values/index.js";
import { buildDecisionSchema, type DecisionType } from "./decision_schema.js";
import {
  createToolMessage,
  fieldOfMessage,
  idOfCall,
  type Tool,
  type ToolCall,
  typeOfMessage,
} from "./tool_calls.js";
import type { ToolCallRequest } from "./tool_node.js";

/** What `value.profile` of the questions is: clients know by it what value and answer look like. */
export const TOOL_APPROVAL_PROFILE = "tool-approval/1";
const REASON = "tool_call";
const ALL: readonly DecisionType[] = ["approve", "edit", "reject", "respond"];

export type ToolApprovalOptions = Omit<
  InterruptOptions,
  "key" | "reason" | "message" | "schema" | "responseSchema"
> & {
  allowedDecisions?: readonly DecisionType[];
  /** The text of the question, or a function that makes it of the call. */
  message?: string | ((call: ToolCall) => string);
};

/** What a person has decided about a call. */
export type ToolDecision = { type: DecisionType; args?: Record<string, unknown>; message?: string };

/**
 * Lets people decide about each call of these tools before it is made: `new ToolNode(tools, { wrapToolCall:
 * approval.wrapToolCall })`. A question has the reason "tool_call". Its answer is `{ type: "approve" }`,
 * `{ type: "edit", args: {…} }`, `{ type: "reject", message?: "why" }` or `{ type: "respond", message: "…" }`, and the
 * server refuses any other. Calls of other tools are not asked about.
 */
export class ToolApproval {
  private readonly schemas: ReadonlyMap<string, Record<string, unknown>>;
  private readonly allowed: readonly DecisionType[];
  private readonly message: ToolApprovalOptions["message"];
  private readonly options: InterruptOptions;

  constructor(tools: readonly Tool[], given: ToolApprovalOptions = {}) {
    const { allowedDecisions = ALL, message, ...options } = given;
    if (tools.length === 0) throw wrong("tools", "want at least one tool to ask about");
    if (allowedDecisions.length === 0 || allowedDecisions.some((one) => !ALL.includes(one))) {
      throw wrong("allowedDecisions", `want a list of at least one of ${ALL.join(", ")}`);
    }
    checkQuestionOptions(options);
    this.schemas = new Map(tools.map((tool) => [tool.name, argumentSchemaOf(tool)]));
    this.allowed = allowedDecisions;
    this.message = message;
    this.options = options;
  }

  /** Decides about a call of a ToolNode, and makes it. */
  readonly wrapToolCall = async (
    request: ToolCallRequest,
    execute: (request: ToolCallRequest) => Promise<unknown>,
  ): Promise<unknown> => {
    const { toolCall } = request;
    const schema = this.schemas.get(toolCall.name);
    if (request.tool === undefined || schema === undefined) return await execute(request);
    const decision = this.decide(toolCall, schema);
    switch (decision.type) {
      case "approve":
        return await execute(request);
      case "edit": {
        const args = decision.args ?? {};
        return explainEdit(toolCall, args, await execute({ ...request, toolCall: { ...toolCall, args } }));
      }
      case "respond":
        return createToolMessage(toolCall, decision.message ?? "", "success");
      case "reject":
        return createToolMessage(toolCall, explainRejection(toolCall, decision.message), "error");
    }
  };

  private decide(call: ToolCall, schema: Record<string, unknown>): ToolDecision {
    const { name, args } = call;
    const message = typeof this.message === "function" ? this.message(call) : this.message;
    const question = { profile: TOOL_APPROVAL_PROFILE, tool_call_id: idOfCall(call), name, args };
    return interrupt(question, {
      ...this.options,
      key: "approval",
      reason: REASON,
      message: message || `Call the tool ${name}?`,
      responseSchema: buildDecisionSchema(this.allowed, name, schema),
    });
  }
}

function argumentSchemaOf(tool: Tool): Record<string, unknown> {
  const text = tool.schema === undefined ? undefined : readResponseSchema(tool.schema).text;
  return { type: "object", ...(text === undefined ? {} : (JSON.parse(text) as Record<string, unknown>)) };
}

/** The model knows only its own arguments: the answer to a changed call says with which it was made. */
function explainEdit(call: ToolCall, args: Record<string, unknown>, answer: unknown): unknown {
  if (typeOfMessage(answer) !== "tool" || JSON.stringify(args) === JSON.stringify(call.args)) return answer;
  const notice =
    `A person has changed this call of ${call.name} before it was made. ` +
    `It was made with these arguments, and is not to be repeated with others: ${JSON.stringify(args)}`;
  const content = fieldOfMessage(answer, "content");
  const told = Array.isArray(content)
    ? [{ type: "text", text: notice }, ...content]
    : `${notice}\n${content}`;
  return createToolMessage(call, told, fieldOfMessage(answer, "status") === "error" ? "error" : "success");
}

function explainRejection({ name }: ToolCall, message: string | undefined): string {
  const told = `A person has rejected this call of ${name}, and it was not made. `;
  return told + (message || "It is not to be repeated unless the user asks for it.");
}

function wrong(option: string, problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`${option}: ${problem}`, { violations: { [option]: problem } });
}

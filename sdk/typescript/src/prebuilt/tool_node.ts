import { END } from "../constants.js";
import { isGraphBubbleUp, isGraphInterrupt } from "../errors/index.js";
import { restoreMessage } from "../messages/restored_message.js";
import { isMessage, toStoredMessage } from "../messages/stored_message.js";
import { currentScope, currentTask, interruptOfAll, scope } from "./task_scopes.js";
import {
  createToolMessage,
  fieldOfMessage,
  idOfCall,
  isAnswer,
  type Tool,
  type ToolCall,
  typeOfMessage,
} from "./tool_calls.js";

/** A call of a tool, for a function around it. */
export type ToolCallRequest = {
  toolCall: ToolCall;
  /** Left out when there is none of the name. */
  tool: Tool | undefined;
  state: unknown;
  config: any;
};

/** Gets a request and the function that makes the call; returns a tool message or a command. */
export type WrapToolCall = (
  request: ToolCallRequest,
  execute: (request: ToolCallRequest) => Promise<unknown>,
) => unknown;

export type ToolNodeOptions = {
  name?: string;
  tags?: string[];
  /** Errors of tools become messages to the model: true. */
  handleToolErrors?: boolean;
  /** Is called around each call, and may change it, make it several times, or answer in its place. */
  wrapToolCall?: WrapToolCall;
};

/**
 * A node that answers every tool call of the last message. The calls run side by side, each in a scope of its own: a
 * tool that asks a person gets the answer to its own question. When one asks, the results of those that have ended
 * are kept: they do not run again with the answer.
 */
export class ToolNode {
  readonly name: string;
  readonly tools: readonly Tool[];
  private readonly handleToolErrors: boolean;
  private readonly wrapToolCall: WrapToolCall | undefined;

  constructor(tools: readonly Tool[], options: ToolNodeOptions = {}) {
    this.name = options.name ?? "tools";
    this.tools = tools;
    this.handleToolErrors = options.handleToolErrors ?? true;
    this.wrapToolCall = options.wrapToolCall;
  }

  /** The answers to the calls of a state or of a list of messages: a list for a list, else an update. */
  async invoke(state: any, config: any = {}): Promise<any> {
    const calls = findCalls(state);
    const outcomes = await Promise.allSettled(calls.map((call) => this.runInScope(call, state, config)));
    await keepResults(calls, outcomes);
    const answers = outcomes.flatMap((outcome): unknown => {
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value;
    });
    return combineAnswers(answers, Array.isArray(state));
  }

  private async runInScope(call: ToolCall, state: unknown, config: unknown): Promise<unknown> {
    if (currentTask() === undefined)
      return await this.answer({ toolCall: call, tool: this.find(call), state, config });
    return await scope(idOfCall(call), async () => {
      const kept = keptResult();
      if (kept !== undefined) return restoreMessage(kept);
      return await this.answer({ toolCall: call, tool: this.find(call), state, config });
    });
  }

  private find(call: ToolCall): Tool | undefined {
    return this.tools.find((tool) => tool.name === call.name);
  }

  private async answer(request: ToolCallRequest): Promise<unknown> {
    const execute = (changed: ToolCallRequest) => this.execute(changed);
    try {
      return await (this.wrapToolCall === undefined ? execute(request) : this.wrapToolCall(request, execute));
    } catch (error) {
      return this.explain(request.toolCall, error);
    }
  }

  private async execute({ toolCall, tool, config }: ToolCallRequest): Promise<unknown> {
    if (tool === undefined) {
      const names = this.tools.map(({ name }) => name).join(", ");
      return createToolMessage(
        toolCall,
        `Error: ${toolCall.name} is not a valid tool, try one of [${names}].`,
        "error",
      );
    }
    try {
      const result = await tool.invoke({ ...toolCall, type: "tool_call" }, config);
      const results = Array.isArray(result) ? result : [result];
      return results.length > 0 && results.every(isAnswer)
        ? result
        : createToolMessage(toolCall, result, "success");
    } catch (error) {
      return this.explain(toolCall, error);
    }
  }

  /** What the model is told of an error. */
  private explain(call: ToolCall, error: unknown): unknown {
    if (isGraphBubbleUp(error) || !this.handleToolErrors) throw error;
    const text = error instanceof Error ? error.message : String(error);
    return createToolMessage(call, `Error: ${text}\n Please fix your mistakes.`, "error");
  }
}

/** Routes to "tools" when the last message asks for tools, else to END. */
export function toolsCondition(state: any): "tools" | typeof END {
  const messages: unknown[] = Array.isArray(state) ? state : state.messages;
  const calls = fieldOfMessage(messages.at(-1), "tool_calls");
  return Array.isArray(calls) && calls.length > 0 ? "tools" : END;
}

/** The calls of the last message of a model that have no answer yet. */
function findCalls(state: any): ToolCall[] {
  if (typeof state === "object" && state !== null && "lg_tool_call" in state) return [state.lg_tool_call];
  const messages: unknown[] = Array.isArray(state) ? state : (state?.messages ?? []);
  const last = messages.findLastIndex((message) => ["ai", "assistant"].includes(typeOfMessage(message)));
  if (last < 0)
    throw new TypeError("ToolNode only accepts AIMessages as input: there is none whose tools could be run");
  const answered = new Set(messages.slice(last).map((message) => fieldOfMessage(message, "tool_call_id")));
  const calls: ToolCall[] = fieldOfMessage(messages[last], "tool_calls") ?? [];
  return calls.filter(({ id }) => id === undefined || !answered.has(id));
}

function combineAnswers(answers: readonly unknown[], asList: boolean): unknown {
  const isMessageAnswer = (answer: unknown) => typeOfMessage(answer) === "tool";
  if (answers.every(isMessageAnswer)) return asList ? answers : { messages: answers };
  return answers.map((answer) =>
    isMessageAnswer(answer) ? (asList ? [answer] : { messages: [answer] }) : answer,
  );
}

const RESULT = "__result__";

/** The result that the call of this scope had before another one asked. */
function keptResult(): Record<string, unknown> | undefined {
  const record = currentTask()?.replay.lookUpMemo(currentScope(), RESULT).record;
  return record?.value as Record<string, unknown> | undefined;
}

/** Where a call asks, records the results of the others, and throws the questions of all, in the order of the calls. */
async function keepResults(
  calls: readonly ToolCall[],
  outcomes: readonly PromiseSettledResult<unknown>[],
): Promise<void> {
  const task = currentTask();
  const asking = outcomes.flatMap((one) =>
    one.status === "rejected" && isGraphInterrupt(one.reason) ? [one.reason] : [],
  );
  if (task === undefined || asking.length === 0) return;
  const scopes: string[] = [];
  for (const [at, call] of calls.entries()) {
    const outcome = outcomes[at];
    const place = { scope: scope(idOfCall(call), currentScope), key: RESULT, index: 0 };
    scopes.push(place.scope);
    if (outcome?.status !== "fulfilled" || !isMessage(outcome.value)) continue;
    await task.host.recordMemo(place, toStoredMessage(outcome.value));
  }
  task.replay.orderQuestions(scopes);
  const failed = outcomes.find((one) => one.status === "rejected" && !isGraphInterrupt(one.reason));
  if (failed?.status === "rejected") throw failed.reason;
  throw interruptOfAll(asking);
}

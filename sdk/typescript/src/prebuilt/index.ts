export { repairChatHistory, unansweredToolCalls, validateChatHistory } from "./chat_history.js";
export type { DecisionType } from "./decision_schema.js";
export type {
  ActionRequest,
  HumanInterrupt,
  HumanInterruptConfig,
  HumanResponse,
} from "./human_interrupt.js";
export { addHumanInTheLoop, type ReviewOptions } from "./review.js";
export {
  TOOL_APPROVAL_PROFILE,
  ToolApproval,
  type ToolApprovalOptions,
  type ToolDecision,
} from "./tool_approval.js";
export type { Tool, ToolCall } from "./tool_calls.js";
export {
  type ToolCallRequest,
  ToolNode,
  type ToolNodeOptions,
  toolsCondition,
  type WrapToolCall,
} from "./tool_node.js";

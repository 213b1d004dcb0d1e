/** The shapes of questions about an action, and of the answers to them, as inboxes for LangGraph's agents know them. */

/** What the person may do; what is left out is not allowed. */
export type HumanInterruptConfig = {
  allow_ignore?: boolean;
  allow_respond?: boolean;
  allow_edit?: boolean;
  allow_accept?: boolean;
};

/** An action with its arguments, like the call of a tool. */
export type ActionRequest = { action: string; args: Record<string, any> };

/** A question about an action, for `interrupt`. */
export type HumanInterrupt = {
  action_request: ActionRequest;
  config: HumanInterruptConfig;
  description?: string;
};

/** The answer: for "edit" `args` is the action to take instead, for "response" a text. */
export type HumanResponse = {
  type: "accept" | "ignore" | "response" | "edit";
  args?: null | string | ActionRequest;
};

/** What a node may say of a question besides its value. */

export type Drift = "fail" | "ask_again" | "accept";
export type Priority = "low" | "normal" | "high" | "urgent";
export type OnExpiry = "fail_node" | "resume_default" | "cancel_run";

/** Who may answer a question, and how many must. */
export type People = {
  users?: readonly string[];
  groups?: readonly string[];
  /** How many agreeing votes for one value decide: 1. */
  approvals?: number;
  /** How many votes that do not agree decide: 1. */
  vetoes?: number;
  /** CEL condition over `answer`: whether an answer agrees. */
  agree?: string;
  /** The requester may not answer. */
  notRequester?: boolean;
  /** Who wants what is asked for; left out, who started the run. */
  requester?: string;
  /** Who has edited the state since the run began may not answer. */
  notContributor?: boolean;
  /** Only who has claimed the question may answer it. */
  exclusive?: boolean;
  /** Those who may answer may name another user who answers in their place. */
  delegable?: boolean;
  /** Users who may see the secret parts; left out, who may answer. */
  revealUsers?: readonly string[];
  revealGroups?: readonly string[];
};

type StepAudience = {
  /** Milliseconds after the question was asked. */
  after: number;
  users?: readonly string[];
  groups?: readonly string[];
};

/** What happens while a question is undecided. */
export type QuestionStep =
  | { remind: StepAudience; escalate?: never }
  | { escalate: StepAudience & { priority?: Priority }; remind?: never };

export type InterruptOptions = {
  /** What an answer must be: a JSON Schema, or a zod schema, whose output is returned. */
  responseSchema?: unknown;
  /** The older name of `responseSchema`. */
  schema?: unknown;
  /** A name for the question: it keeps its answer when the code around it changes. */
  key?: string;
  /** What kind of question, like "approval". */
  reason?: string;
  /** Text to show when nothing else is known of the question. */
  message?: string;
  /** Who should answer: inboxes filter by it. */
  assignees?: readonly string[];
  /** Milliseconds that the question stays open. */
  ttl?: number;
  /** What happens then. */
  onExpiry?: OnExpiry;
  /** The answer of `onExpiry: "resume_default"`. */
  default?: unknown;
  /** Who may answer, and how many must. */
  people?: People;
  priority?: Priority;
  /** What happens while the question is undecided, in order and before the `ttl`. */
  steps?: readonly QuestionStep[];
  /** Milliseconds that an answer can be taken back. */
  undo?: number;
  /** What happens when the node asks something else on its replay. */
  drift?: Drift;
  /** Parts that may differ then: JSON pointers into the value, "message", "schema", "value". */
  driftIgnore?: readonly string[];
  /** JSON pointers to parts of the value and of the answer that only some callers see. */
  secret?: readonly string[];
};

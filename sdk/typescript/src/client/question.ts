/** Questions of graphs to people, as an inbox shows them. */
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Interrupt,
  InterruptAction,
  InterruptState,
  type People,
  Priority,
  type Vote as WireVote,
} from "../_gen/graphd/v1/interrupt_pb.js";
import { fromPayload } from "../codec/index.js";
import { publicLevels, publicName, publicThread } from "../names/index.js";
import { readTime } from "./run.js";

export type QuestionState = "open" | "answered" | "consumed" | "expired" | "cancelled" | "superseded";

/** What a caller may do with a question. */
export type QuestionAction =
  | "answer"
  | "claim"
  | "release"
  | "comment"
  | "delegate"
  | "assign"
  | "extend"
  | "end_claim"
  | "retract"
  | "reveal"
  | "link"
  | "cancel";

/** The answer of one person to a question that several decide. */
export type Vote = {
  principal: string;
  /** The answer; left out of one who declined. */
  value?: unknown;
  agrees: boolean;
  dismissed: boolean;
  note: string;
  time: Date | undefined;
};

/** A question of a node, with its answer once there is one. */
export type Question = {
  id: string;
  threadId: string;
  runId: string;
  graph: string;
  node: string;
  /** Where the node is, from the outside in: levels `node:task`. */
  namespace: string[];
  /** What the node asks. */
  value: unknown;
  message: string;
  /** approval, input, confirmation, breakpoint, or a word of the graph's author. */
  reason: string;
  /** JSON Schema of the answer; left out when any JSON is one. */
  responseSchema: unknown;
  state: QuestionState;
  /** Who should answer. */
  assignees: string[];
  /** Who may answer, and how many must; left out for all, and one. */
  people: People | undefined;
  /** Answers of those who may answer, until they decide. */
  votes: Vote[];
  /** Who answers in whose place: the delegate by the user who has named the delegate. */
  delegates: Record<string, string>;
  claimedBy: string;
  claimExpiresAt: Date | undefined;
  priority: string;
  /** When its next step is taken, or it expires. */
  dueAt: Date | undefined;
  key: string;
  createdAt: Date | undefined;
  updatedAt: Date | undefined;
  expiresAt: Date | undefined;
  /** The answer, once there is one. */
  response: unknown;
  dismissed: boolean;
  responder: string;
  /** When the answer takes effect: until then it can be taken back. */
  effectiveAt: Date | undefined;
  /** Milliseconds that an answer can be taken back. */
  undo: number;
  note: string;
  /** Id of the question in whose place it was asked, and JSON pointers to what differs from that. */
  replaces: string;
  differs: string[];
  /** JSON pointers to parts that only some callers see. */
  secret: string[];
  /** What the caller may do; empty in lists and watches. */
  allowed: QuestionAction[];
  /** Changes with the question. */
  etag: string;
  /** Digest of what the question shows: an answer is refused when it shows something else by then. */
  seen: string;
};

export function readQuestion(question: Interrupt): Question {
  return {
    id: question.interruptId,
    threadId: publicThread(question.threadId),
    runId: question.runId,
    graph: question.graph,
    node: publicName(question.node),
    namespace: publicLevels(question.checkpoint?.namespace ?? []),
    value: fromPayload(question.value),
    message: question.message,
    reason: question.reason,
    responseSchema: fromPayload(question.responseSchema),
    state: (InterruptState[question.state] ?? "").toLowerCase() as QuestionState,
    assignees: question.assignees,
    people: question.people,
    votes: question.votes.map(readVote),
    delegates: Object.fromEntries(question.delegations.map((one) => [one.from, one.to])),
    claimedBy: question.claimedBy,
    claimExpiresAt: readTime(question.claimExpireTime),
    priority: (Priority[question.priority] ?? "").toLowerCase(),
    dueAt: readTime(question.dueTime),
    key: question.key,
    createdAt: readTime(question.createTime),
    updatedAt: readTime(question.updateTime),
    expiresAt: readTime(question.expireTime),
    response: fromPayload(question.response),
    dismissed: question.dismissed,
    responder: question.responder,
    effectiveAt: readTime(question.effectiveTime),
    undo: readMilliseconds(question.undo),
    note: question.note,
    replaces: question.replaces,
    differs: question.differs,
    secret: question.secret,
    allowed: question.allowed.map(
      (action) => (InterruptAction[action] ?? "").toLowerCase() as QuestionAction,
    ),
    etag: question.etag,
    seen: question.seen,
  };
}

function readVote(vote: WireVote): Vote {
  return {
    principal: vote.principal,
    ...(vote.value === undefined ? {} : { value: fromPayload(vote.value) }),
    agrees: vote.agrees,
    dismissed: vote.value === undefined,
    note: vote.note,
    time: readTime(vote.time),
  };
}

export function readMilliseconds(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}

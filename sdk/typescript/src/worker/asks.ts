/** Questions and used answers, as the server takes them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ExpiryAction,
  type PeopleSchema,
  type StepSchema,
  Priority as WirePriority,
} from "../_gen/graphd/v1/interrupt_pb.js";
import type { AskSchema, UsedAnswerSchema } from "../_gen/graphd/v1/worker_task_pb.js";
import { textPayload, toPayload } from "../codec/index.js";
import { DRIFTS, toDuration } from "../declare/index.js";
import type { Question, UsedAnswer } from "../runtime/index.js";
import type { OnExpiry, People, Priority, QuestionStep } from "../values/index.js";

const EXPIRY: Record<OnExpiry, ExpiryAction> = {
  fail_node: ExpiryAction.FAIL_NODE,
  resume_default: ExpiryAction.RESUME_DEFAULT,
  cancel_run: ExpiryAction.CANCEL_RUN,
};

const PRIORITIES: Record<Priority, WirePriority> = {
  low: WirePriority.LOW,
  normal: WirePriority.NORMAL,
  high: WirePriority.HIGH,
  urgent: WirePriority.URGENT,
};

export function buildAsk(question: Question): MessageInitShape<typeof AskSchema> {
  const { place, options } = question;
  return {
    ...place,
    reason: options.reason ?? "",
    message: options.message ?? "",
    value: textPayload(question.text),
    responseSchema: options.schemaText === undefined ? undefined : textPayload(options.schemaText),
    ttl: toDuration(options.ttl),
    expiryAction: options.onExpiry && EXPIRY[options.onExpiry],
    defaultResponse: options.onExpiry === "resume_default" ? toPayload(options.default ?? null) : undefined,
    assignees: [...(options.assignees ?? [])],
    drift: options.drift && DRIFTS[options.drift],
    driftIgnore: [...(options.driftIgnore ?? [])],
    people: options.people && buildPeople(options.people),
    priority: options.priority && PRIORITIES[options.priority],
    steps: (options.steps ?? []).map(buildStep),
    undo: toDuration(options.undo),
    secret: [...question.secret],
  };
}

function buildPeople(people: People): MessageInitShape<typeof PeopleSchema> {
  const { users = [], groups = [], revealUsers = [], revealGroups = [], ...rest } = people;
  const isRevealed = revealUsers.length > 0 || revealGroups.length > 0;
  return {
    ...rest,
    users: [...users],
    groups: [...groups],
    reveal: isRevealed ? { users: [...revealUsers], groups: [...revealGroups] } : undefined,
  };
}

function buildStep(step: QuestionStep): MessageInitShape<typeof StepSchema> {
  const { after, users = [], groups = [] } = step.remind ?? step.escalate;
  const audience = { users: [...users], groups: [...groups] };
  if (step.remind) return { after: toDuration(after), action: { case: "remind", value: audience } };
  const { priority } = step.escalate;
  const value = { ...audience, priority: priority && PRIORITIES[priority] };
  return { after: toDuration(after), action: { case: "escalate", value } };
}

export function buildUsedAnswer(used: UsedAnswer): MessageInitShape<typeof UsedAnswerSchema> {
  const { place, seen, secretSeen, asked } = used;
  return { ...place, seen, secretSeen, asked: asked && buildAsk(asked) };
}

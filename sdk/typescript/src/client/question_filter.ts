import { InvalidArgumentError } from "../errors/index.js";
import { wireName, wireThread } from "../names/index.js";

/** Which questions a list or a watch is about. */
export type QuestionFilter = {
  threadId?: string;
  graph?: string;
  node?: string;
  reason?: string;
  /** One of the users who should answer. */
  assignee?: string;
  /** One of the groups who should answer. */
  group?: string;
  claimedBy?: string;
  priority?: "low" | "normal" | "high" | "urgent";
  /** Questions for the caller, for a group of the caller, or claimed by the caller. */
  mine?: boolean;
  /** Those whose next step or expiry comes before. */
  dueBefore?: Date;
  /** `open` in lists unless it is given; `*` for every state. */
  state?: string;
};

/** The filter of the server for questions that fit all that is given. */
export function buildQuestionFilter(given: QuestionFilter): string {
  const { threadId, graph, node, reason, assignee, group, claimedBy, priority, mine, dueBefore, state } =
    given;
  const conditions: Record<string, string | undefined> = {
    thread_id: threadId === undefined ? undefined : wireThread(threadId),
    graph,
    node: node === undefined ? undefined : wireName(node),
    reason,
    assignee,
    group,
    claimed_by: claimedBy,
    priority: priority?.toUpperCase(),
    mine: mine === true ? "true" : undefined,
    state: state?.toUpperCase(),
  };
  const parts = Object.entries(conditions)
    .filter((one): one is [string, string] => one[1] !== undefined)
    .map(([field, value]) => `${field} = ${quote(field, value)}`);
  if (dueBefore !== undefined) parts.push(`due < ${quote("dueBefore", dueBefore.toISOString())}`);
  return parts.join(" AND ");
}

function quote(field: string, value: string): string {
  if (value === "") {
    const problem = `${field} is empty: want a name, or leave it out for any`;
    throw new InvalidArgumentError(problem, { violations: { [field]: problem } });
  }
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

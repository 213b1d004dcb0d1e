/** What the code of a task is called with. */
import type { Failure, Payload } from "../_gen/graphd/v1/payload_pb.js";
import type { TaskAssignment } from "../_gen/graphd/v1/worker_task_pb.js";
import { errorOfFailure } from "../calls/index.js";
import { payloadText } from "../codec/index.js";
import { ROOT } from "../constants.js";
import { NodeError } from "../errors/index.js";
import { loadMessageClasses, mayHaveMessages } from "../messages/restored_message.js";
import { publicName } from "../names/index.js";
import { type LocalRun, matchesFailure } from "../runtime/index.js";
import { type DeclaredState, decodeValue } from "../state/index.js";
import { textOf } from "./kept_values.js";

/** The input of a Send, or the part of the state that the node reads. */
export function readInput(assignment: TaskAssignment, state: DeclaredState): unknown {
  const sent = payloadText(assignment.sendInput);
  if (sent !== undefined) return decodeValue(sent, state.hasSchemas);
  if (state.isRoot) return readKey(state, ROOT, assignment.channels[ROOT]);
  return Object.fromEntries(
    Object.entries(assignment.channels).map(([name, stored]) => [name, readKey(state, name, stored)]),
  );
}

function readKey(state: DeclaredState, name: string, stored: Payload | undefined): unknown {
  const text = textOf(stored);
  if (text === undefined) return undefined;
  return state.keys.get(name)?.read(text) ?? decodeValue(text);
}

/** Loads the classes of the messages in an assignment, if there are any. */
export async function loadClassesFor({
  channels,
  sendInput,
  journal,
  reduction,
}: TaskAssignment): Promise<void> {
  const values = [...Object.values(channels), sendInput, reduction?.current, ...(reduction?.writes ?? [])];
  const memos = (journal?.entries ?? []).flatMap(({ entry }) => (entry.case === "memo" ? [entry.value] : []));
  if ([...values, ...memos].some(hasMessages)) await loadMessageClasses();
}

function hasMessages(value: Payload | undefined): boolean {
  const text = textOf(value) ?? "";
  return typeof text === "string" ? mayHaveMessages(text) : text.hasMessages;
}

/** What an error handler is told: the very error where this process has thrown it. */
export function readFailure(failure: Failure, local: LocalRun | undefined): NodeError {
  const thrown = local?.errors.findLast((error) => matchesFailure(failure, error));
  return new NodeError(publicName(failure.node), thrown ?? errorOfFailure(failure));
}

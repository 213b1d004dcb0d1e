/** What a node has returned or thrown, as the server takes it. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Goto } from "../_gen/graphd/v1/payload_pb.js";
import {
  type TaskCompletedSchema,
  TaskFailed_Cause,
  type TaskResult,
  TaskResultSchema,
} from "../_gen/graphd/v1/worker_task_pb.js";
import { textPayload } from "../codec/index.js";
import { ROOT } from "../constants.js";
import { buildGotos, type Program, writeFields, writeText } from "../declare/index.js";
import { hasErrorName, ParentCommand } from "../errors/index.js";
import { baseTypesOfError, kindOfError, type Replay, stackOfError, textOfError } from "../runtime/index.js";
import { checkWrites, type DeclaredKey, readUpdate } from "../state/index.js";
import {
  Command,
  isCommand,
  isOverwrite,
  isSend,
  isWorthRetrying,
  type RetryPolicy,
} from "../values/index.js";
import { buildAsk, buildUsedAnswer } from "./asks.js";
import type { MessageIds } from "./message_ids.js";

type Keys = ReadonlyMap<string, DeclaredKey>;
type Completed = MessageInitShape<typeof TaskCompletedSchema>;

/**
 * The result of a node, after what it pushed. Throws `ParentCommand` for a command to the graph around, and the error
 * of a schema for what that does not take.
 */
export async function buildCompleted(
  result: unknown,
  program: Program,
  ids: MessageIds,
  pushed: readonly [string, unknown][] = [],
): Promise<Completed> {
  const { keys, builder } = program;
  const { writes, gotoTargets } = readResult(result, keys);
  const checked = await checkWrites(writes, builder.schemas.state.keys);
  return {
    ...buildUpdate([...pushed.filter(([name]) => keys.has(name)), ...checked], keys, ids),
    gotoTargets,
  };
}

function readResult(result: unknown, keys: Keys): { writes: [string, unknown][]; gotoTargets: Goto[] } {
  const writes: [string, unknown][] = [];
  const gotoTargets: Goto[] = [];
  for (const part of splitResult(result, keys)) {
    if (isCommand(part)) {
      if (part.graph === Command.PARENT) throw new ParentCommand(part);
      gotoTargets.push(...buildGotos(part.goto));
      if (part.update !== undefined && part.update !== null) writes.push(...readUpdate(part.update, keys));
    } else if (isSend(part)) gotoTargets.push(...buildGotos(part));
    else if (part !== undefined && part !== null) writes.push(...readUpdate(part, keys));
  }
  return { writes, gotoTargets };
}

/** A command for the graph around, whose keys are not known here. */
export function buildParentCommand(command: Command, ids: MessageIds): Completed {
  const writes = command.update === undefined ? [] : readUpdate(command.update, undefined);
  return { ...buildUpdate(writes, new Map(), ids), gotoTargets: buildGotos(command.goto), toParent: true };
}

/** A list with commands or sends is as many results; another one is a value. */
function splitResult(result: unknown, keys: Keys): unknown[] {
  if (!Array.isArray(result)) return [result];
  const hasCommands = result.some((part) => isCommand(part) || isSend(part));
  return hasCommands || (!keys.has(ROOT) && result.length === 0) ? result : [result];
}

function buildUpdate(written: readonly [string, unknown][], keys: Keys, ids: MessageIds): Completed {
  const writes = written.map(([name, value]): [string, unknown] => [name, ids.addIds(keys.get(name), value)]);
  const names = new Set(writes.map(([name]) => name));
  if (names.size === writes.length && !writes.some(([, value]) => isOverwrite(value))) {
    if (writes.length === 0) return {};
    const [first] = writes;
    if (first && keys.has(ROOT))
      return { update: textPayload(writeText("the result", first[1], keys.get(ROOT))) };
    return { update: textPayload(writeFields(writes, keys)) };
  }
  return {
    writes: writes.map(([channel, value]) => {
      const overwrite = isOverwrite(value);
      const whole = overwrite ? value.__overwrite__ : value;
      return { channel, overwrite, value: textPayload(writeText(channel, whole, keys.get(channel))) };
    }),
  };
}

/** The open questions of an attempt, and those of the graphs that it has called. */
export function buildInterrupted(replay: Replay, waiting: readonly string[]): TaskResult {
  return addUsed(
    create(TaskResultSchema, {
      outcome: {
        case: "interrupted",
        value: { asks: replay.questions.map(buildAsk), waitingInterruptIds: [...waiting] },
      },
    }),
    replay,
  );
}

export function buildResult(completed: Completed, replay: Replay): TaskResult {
  return addUsed(create(TaskResultSchema, { outcome: { case: "completed", value: completed } }), replay);
}

function addUsed(result: TaskResult, { used }: Replay): TaskResult {
  if (used.length > 0) result.used = create(TaskResultSchema, { used: used.map(buildUsedAnswer) }).used;
  return result;
}

/** A failed attempt, and whether the policy of the node wants another. */
export function buildFailed(thrown: unknown, policy: RetryPolicy | undefined): TaskResult {
  const isRetried = policy !== undefined && (policy.retryOn ?? isWorthRetrying)(thrown);
  return create(TaskResultSchema, {
    outcome: {
      case: "failed",
      value: {
        type: kindOfError(thrown),
        message: textOfError(thrown),
        stack: stackOfError(thrown),
        baseTypes: baseTypesOfError(thrown),
        nonRetryable: !isRetried,
        cause: causeOf(thrown),
      },
    },
  });
}

function causeOf(thrown: unknown): TaskFailed_Cause {
  if (hasErrorName(thrown, "NonDeterministicNode")) return TaskFailed_Cause.NON_DETERMINISTIC;
  if (hasErrorName(thrown, "InvalidUpdateError")) return TaskFailed_Cause.INVALID_UPDATE;
  return TaskFailed_Cause.USER_CODE;
}

export function buildCancelled(note: string): TaskResult {
  return create(TaskResultSchema, { outcome: { case: "cancelled", value: { note } } });
}

/** In place of a result that is larger than the server takes. */
export function buildTooLarge(size: number, limit: number): TaskResult {
  const message =
    `the result has ${size} bytes; at most ${limit} are allowed, so store large values elsewhere and pass on where ` +
    "they are";
  return create(TaskResultSchema, {
    outcome: {
      case: "failed",
      value: { type: "ResultTooLarge", message, nonRetryable: true, cause: TaskFailed_Cause.TOO_LARGE },
    },
  });
}

/** In place of a result that the server has refused. */
export function buildNotTaken(error: unknown): TaskResult {
  const message = `the server did not take the result: ${textOfError(error)}`;
  return create(TaskResultSchema, {
    outcome: { case: "failed", value: { type: kindOfError(error), message, nonRetryable: true } },
  });
}

/** What to ask of the server for an invoke or stream call. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { EventFilterSchema } from "../_gen/graphd/v1/event_pb.js";
import {
  type ResumeRequest,
  ResumeRequestSchema,
  type StreamRequest,
  StreamRequestSchema,
} from "../_gen/graphd/v1/graph_service_pb.js";
import {
  ConcurrencyPolicy,
  type InterruptResponseSchema,
  OpenInterruptPolicy,
  type RunSpecSchema,
} from "../_gen/graphd/v1/run_pb.js";
import { createId } from "../calls/index.js";
import { textPayload, toPayload } from "../codec/index.js";
import { EmptyInputError, InvalidArgumentError, InvalidUpdateError } from "../errors/index.js";
import { parseNamespace } from "../names/index.js";
import type { RunConfig } from "./config.js";
import { buildGotos } from "./gotos.js";
import type { GraphShape } from "./graph_shape.js";
import { callLabels } from "./labels.js";
import { isObject } from "./stream_modes.js";
import { buildWireContext } from "./wire_context.js";

type Response = MessageInitShape<typeof InterruptResponseSchema>;

/** One invoke or stream, checked and complete. */
export type CallSpec = {
  /** Name of the graph, and its version; empty for those of the thread. */
  graph: string;
  version: string;
  shape: GraphShape;
  /** The thread, as the server knows it. */
  thread: string;
  config: RunConfig;
  /** Milliseconds after which the run begins. */
  beginAfter?: number | undefined;
  interruptBefore?: readonly string[] | undefined;
  interruptAfter?: readonly string[] | undefined;
  /** What a run does that begins while another one is active, or while questions are open. Left out, it withdraws these. */
  whenBusy?: ConcurrencyPolicy | undefined;
  openQuestions?: OpenInterruptPolicy | undefined;
};

type Command = {
  graph?: string | undefined;
  update?: unknown;
  resume?: unknown;
  goto?: unknown;
};

/** Whether an input is a command, of this copy of the package or another. */
export function isCommand(value: unknown): value is Command {
  return (value as { lg_name?: unknown } | null | undefined)?.lg_name === "Command";
}

/** Whether an input answers questions. */
export function answersQuestions(input: unknown): input is Command {
  return isCommand(input) && input.resume !== undefined;
}

/** The request that starts a run, or goes on with what is left to do when there is no input. */
export function buildStart(
  call: CallSpec,
  input: unknown,
  filter: MessageInitShape<typeof EventFilterSchema>,
): StreamRequest {
  const run: MessageInitShape<typeof RunSpecSchema> = {
    threadId: call.thread,
    createThread: true,
    graph: call.graph,
    graphVersion: call.version,
    metadata: callLabels(call.config),
    concurrency: call.whenBusy ?? ConcurrencyPolicy.UNSPECIFIED,
    openInterrupts: call.openQuestions ?? OpenInterruptPolicy.DISCARD,
    runId: runIdOf(call.config),
    start: startOf(call, input),
    ...(call.beginAfter === undefined ? {} : { beginAfter: readDelay(call.beginAfter) }),
    ...settingsOf(call),
    ...(isCommand(input) ? commandOf(call, input) : {}),
  };
  const at = call.config.configurable?.checkpoint_id;
  if (at !== undefined && run.start?.case === "input") run.inputAt = { checkpointId: String(at) };
  return create(StreamRequestSchema, { run, filter, requestId: createId() });
}

/** The request that answers questions, and follows the run that goes on. */
export function buildResume(
  call: CallSpec,
  command: Command,
  responses: readonly Response[],
  filter: MessageInitShape<typeof EventFilterSchema>,
): ResumeRequest {
  const [only] = responses;
  const isSingle = responses.length === 1 && !only?.interruptId;
  const { checkpoint_ns: namespace, checkpoint_id: checkpoint } = call.config.configurable ?? {};
  return create(ResumeRequestSchema, {
    resume: {
      threadId: call.thread,
      metadata: callLabels(call.config),
      settings: settingsOf(call),
      expectedCheckpointId: namespace || checkpoint === undefined ? "" : String(checkpoint),
      ...(isSingle ? { single: only } : { responses: [...responses] }),
      ...commandOf(call, command),
    },
    filter,
    requestId: createId(),
  });
}

/**
 * The answers of a command: each by its id, or the only one without. An object is a map of ids only if one of its
 * keys is the id of a question of the thread.
 */
export function responsesOf(answer: unknown, knownIds: readonly string[]): Response[] {
  if (!looksLikeIdMap(answer) || !knownIds.some((id) => id in answer)) {
    return [{ outcome: { case: "value", value: toPayload(answer) } }];
  }
  return Object.entries(answer).map(([interruptId, value]) => ({
    interruptId,
    outcome: { case: "value", value: toPayload(value) },
  }));
}

/** Whether an answer may be a map of answers by the ids of their questions. */
export function looksLikeIdMap(answer: unknown): answer is Record<string, unknown> {
  if (!isObject(answer)) return false;
  const keys = Object.keys(answer);
  return keys.length > 0 && keys.every((key) => /^[0-9a-f]{32}$/.test(key));
}

function startOf(call: CallSpec, input: unknown): MessageInitShape<typeof RunSpecSchema>["start"] {
  if (isCommand(input)) {
    const leads = Array.isArray(input.goto) ? input.goto.length > 0 : input.goto !== undefined;
    if (input.update === undefined && !leads) throw new EmptyInputError("Received empty Command input");
  } else if (input !== null && input !== undefined) {
    return { case: "input", value: textPayload(call.shape.encodeUpdate(input)) };
  }
  const { checkpoint_id: checkpointId, checkpoint_ns: namespace } = call.config.configurable ?? {};
  if (checkpointId === undefined) return undefined;
  return {
    case: "replayFrom",
    value: { checkpointId: String(checkpointId), namespace: parseNamespace(String(namespace ?? "")) },
  };
}

function commandOf(call: CallSpec, command: Command) {
  if (command.graph !== undefined) throw new InvalidUpdateError("There is no parent graph");
  const { update } = command;
  return {
    ...(update === undefined || update === null
      ? {}
      : { update: textPayload(call.shape.encodeUpdate(update)) }),
    gotoTargets: buildGotos(command.goto),
  };
}

function settingsOf(call: CallSpec) {
  const carried = buildWireContext(call.config.context, call.config.configurable);
  return {
    ...(carried === undefined ? {} : { context: toPayload(carried) }),
    interruptBefore: [...(call.interruptBefore ?? [])],
    interruptAfter: [...(call.interruptAfter ?? [])],
    stepLimit: readStepLimit(call.config.recursionLimit),
  };
}

function readDelay(milliseconds: number) {
  if (milliseconds > 0) return durationFromMs(milliseconds);
  const problem = `beginAfter must be milliseconds above 0, not ${milliseconds}`;
  throw new InvalidArgumentError(problem, { violations: { beginAfter: problem } });
}

/** As many supersteps as the server counts. */
const MOST_STEPS = 2 ** 31 - 2;

/** The recursion limit in supersteps; 0 for that of the server. */
function readStepLimit(limit: number | undefined): number {
  if (limit === undefined) return 0;
  if (!(limit >= 1)) {
    const problem = `recursionLimit must be a number of at least 1, not ${limit}`;
    throw new InvalidArgumentError(problem, { violations: { recursionLimit: problem } });
  }
  return Math.floor(Math.min(limit, MOST_STEPS));
}

/** The id that the caller gives to a run, or one of our own. The same id again is the same run. */
function runIdOf(config: RunConfig): string {
  const given = config.runId ?? "";
  return /^[A-Za-z0-9_.:-]{1,128}$/.test(given) ? given : createId();
}

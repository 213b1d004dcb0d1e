/** Reads and writes the states of one thread. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StateSnapshot as WireSnapshot } from "../_gen/graphd/v1/thread_pb.js";
import {
  type BulkUpdateStateRequestSchema,
  type StateSuperstepSchema,
  type StateUpdateSchema,
  ThreadService,
} from "../_gen/graphd/v1/thread_service_pb.js";
import { type Caller, callRepeatedly, createId } from "../calls/index.js";
import { textPayload, toPayload } from "../codec/index.js";
import { END } from "../constants.js";
import { InvalidUpdateError, isGraphdError } from "../errors/index.js";
import { parseNamespace, wireName } from "../names/index.js";
import type { RunConfig } from "./config.js";
import { foldCheckpoints, markOf } from "./folded_history.js";
import { buildGotos } from "./gotos.js";
import type { GraphShape } from "./graph_shape.js";
import { isCommand } from "./run_request.js";
import {
  configOf,
  emptySnapshot,
  type PlaceConfig,
  SnapshotReader,
  type StateSnapshot,
} from "./snapshots.js";

const { getState, listCheckpoints, bulkUpdateState, createThread } = ThreadService.method;
const PAGE = 100;

export type ThreadPlace = {
  caller: Caller;
  shape: GraphShape;
  /** Name and version of the graph; empty for those of the thread. */
  graph: string;
  version: string;
  /** The thread, as the server knows it. */
  thread: string;
  config: RunConfig;
};

export type HistoryOptions = {
  limit?: number | undefined;
  before?: RunConfig | undefined;
  /** Metadata that checkpoints must have. */
  filter?: Record<string, unknown> | undefined;
};

/** One update by hand: what to write, and as which node. */
export type StateUpdate = { values: unknown; asNode?: string | undefined; taskId?: string | undefined };

/** The newest state, or that of the checkpoint which the config names. */
export async function getThreadState(
  place: ThreadPlace,
  options: { subgraphs?: boolean } = {},
): Promise<StateSnapshot> {
  const { caller, shape, thread, config } = place;
  const subgraphs = options.subgraphs === true;
  try {
    const state = await callRepeatedly(caller, getState, {
      threadId: thread,
      subgraphs,
      at: checkpointOf(config),
    });
    await showOrigin(place, state);
    return new SnapshotReader(shape, config, subgraphs).read(state);
  } catch (error) {
    if (isGraphdError(error, "THREAD_NOT_FOUND")) return emptySnapshot(config);
    throw error;
  }
}

/** Gives a state the parent that history shows. */
async function showOrigin(place: ThreadPlace, state: WireSnapshot): Promise<void> {
  if (markOf(state) === "") return;
  // Of such a call only what was finished is kept.
  for (const task of state.tasks)
    if (task.failure?.reason === "CANCELLED_BY_CLIENT") task.failure = undefined;
  if (state.parent === undefined) return;
  for await (const shown of foldCheckpoints(listSnapshots(place, false))) {
    if (shown.checkpoint?.checkpointId !== state.checkpoint?.checkpointId) continue;
    state.parent = shown.parent;
    return;
  }
}

/** Checkpoints, newest first; of a config that names one, that one. */
export async function* listThreadStates(
  place: ThreadPlace,
  options: HistoryOptions = {},
): AsyncGenerator<StateSnapshot, void, undefined> {
  const reader = new SnapshotReader(place.shape, place.config);
  const boundary = options.before?.configurable?.checkpoint_id;
  const only = place.config.configurable?.checkpoint_id;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let isPast = boundary === undefined;
  if (left <= 0) return;
  for await (const state of foldCheckpoints(listSnapshots(place, true))) {
    const id = state.checkpoint?.checkpointId;
    if (!isPast) {
      isPast = id === boundary;
      continue;
    }
    if (only !== undefined && id !== only) continue;
    const snapshot = reader.read(state);
    const wanted = Object.entries(options.filter ?? {});
    if (wanted.some(([key, value]) => snapshot.metadata?.[key] !== value)) continue;
    yield snapshot;
    if (--left <= 0) return;
  }
}

async function* listSnapshots(
  { caller, thread, config }: ThreadPlace,
  includeValues: boolean,
): AsyncGenerator<WireSnapshot> {
  const namespace = parseNamespace(String(config.configurable?.checkpoint_ns ?? ""));
  let pageToken = "";
  do {
    const request = { threadId: thread, namespace, pageSize: PAGE, pageToken, includeValues };
    try {
      const page = await callRepeatedly(caller, listCheckpoints, request);
      yield* page.checkpoints;
      pageToken = page.nextPageToken;
    } catch (error) {
      if (isGraphdError(error, "THREAD_NOT_FOUND")) return;
      throw error;
    }
  } while (pageToken !== "");
}

/** Writes one checkpoint per superstep; returns the config of the last. */
export async function updateThreadState(
  place: ThreadPlace,
  supersteps: readonly (readonly StateUpdate[])[],
): Promise<PlaceConfig> {
  if (supersteps.length === 0) throw new InvalidUpdateError("No supersteps provided");
  const request = {
    threadId: place.thread,
    at: checkpointOf(place.config),
    supersteps: supersteps.map((updates) => buildSuperstep(place, updates)),
    requestId: createId(),
  };
  const written = await writeUpdate(place, request);
  if (written.checkpoint === undefined) throw new InvalidUpdateError("the server has made no checkpoint");
  return configOf(place.config, written.checkpoint);
}

/** Writes an input for later: a call without one goes on with it. */
export async function writeInput(place: ThreadPlace, input: unknown): Promise<void> {
  const request = {
    threadId: place.thread,
    at: checkpointOf(place.config),
    supersteps: [buildSuperstep(place, [{ values: input, asNode: AS_NEW_INPUT }])],
    supersedeInterrupts: true,
    requestId: createId(),
  };
  await writeUpdate(place, request);
}

type UpdateRequest = MessageInitShape<typeof BulkUpdateStateRequestSchema>;

async function writeUpdate(place: ThreadPlace, request: UpdateRequest): Promise<WireSnapshot> {
  const { caller, thread, graph, version } = place;
  try {
    return await callRepeatedly(caller, bulkUpdateState, request);
  } catch (error) {
    if (isGraphdError(error, "THREAD_NOT_FOUND") && graph !== "") {
      await callRepeatedly(caller, createThread, {
        threadId: thread,
        thread: { graph, graphVersion: version },
        requestId: createId(),
      });
      return await callRepeatedly(caller, bulkUpdateState, request);
    }
    if (isGraphdError(error, "THREAD_INTERRUPTED")) {
      // An update withdraws the questions that are open, as in LangGraph.
      return await callRepeatedly(caller, bulkUpdateState, { ...request, supersedeInterrupts: true });
    }
    throw error;
  }
}

/** As which "node" an input is written that is not run at once. */
const AS_NEW_INPUT = "__new_input__";

/** Updates that are one alone in their superstep. */
const ALONE: Record<string, string> = {
  __input__: "Cannot apply multiple updates when updating as input",
  __copy__: "Cannot copy checkpoint with multiple updates",
  [END]: "Cannot apply multiple updates when clearing state",
};

function buildSuperstep(
  place: ThreadPlace,
  updates: readonly StateUpdate[],
): MessageInitShape<typeof StateSuperstepSchema> {
  if (updates.length === 0) throw new InvalidUpdateError("No updates provided");
  for (const { asNode } of updates.length > 1 ? updates : []) {
    if (asNode === undefined)
      throw new InvalidUpdateError("asNode is required when applying multiple updates");
    if (asNode in ALONE) throw new InvalidUpdateError(ALONE[asNode]);
  }
  return { updates: updates.map((update) => buildUpdate(place, update)) };
}

function buildUpdate(
  { shape, config }: ThreadPlace,
  update: StateUpdate,
): MessageInitShape<typeof StateUpdateSchema> {
  const { asNode = "", taskId = "" } = update;
  const target = shape.findGraph(parseNamespace(String(config.configurable?.checkpoint_ns ?? ""))) ?? shape;
  const command = isCommand(update.values) ? update.values : undefined;
  if (command?.graph !== undefined) throw new InvalidUpdateError("There is no parent graph");
  const given = command === undefined ? update.values : command.update;
  const isEmpty = given === undefined || given === null || asNode === END || asNode === "__copy__";
  return {
    asNode: wireName(asNode),
    taskId,
    gotoTargets: buildGotos(command?.goto),
    values: isEmpty ? toPayload(given ?? null) : textPayload(target.encodeUpdate(given)),
  };
}

function checkpointOf({ configurable }: RunConfig) {
  const { checkpoint_id: id = "", checkpoint_ns: namespace = "" } = configurable ?? {};
  if (id === "" && namespace === "") return undefined;
  return { checkpointId: String(id), namespace: parseNamespace(String(namespace)) };
}

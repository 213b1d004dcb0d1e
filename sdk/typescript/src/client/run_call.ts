/** Makes the calls of one run and turns what comes back into items. */
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Event } from "../_gen/graphd/v1/event_pb.js";
import { CancelRunRequest_Action, GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import type { Interrupt } from "../_gen/graphd/v1/interrupt_pb.js";
import { InterruptService } from "../_gen/graphd/v1/interrupt_service_pb.js";
import { type Run, RunState } from "../_gen/graphd/v1/run_pb.js";
import { ThreadService } from "../_gen/graphd/v1/thread_service_pb.js";
import {
  type Caller,
  callRepeatedly,
  createAbortError,
  errorOfRun,
  type FindThrown,
} from "../calls/index.js";
import { payloadText } from "../codec/index.js";
import { INTERRUPT } from "../constants.js";
import { isGraphdError } from "../errors/index.js";
import { type EventRequest, followEvents } from "./event_stream.js";
import type { NamedVersion } from "./named_version.js";
import { restoreOmittedValues } from "./omitted_values.js";
import { RefusedRequest } from "./refused_request.js";
import {
  answersQuestions,
  buildResume,
  buildStart,
  type CallSpec,
  isCommand,
  looksLikeIdMap,
  responsesOf,
} from "./run_request.js";
import { showQuestions } from "./shown_interrupt.js";
import { readState, SnapshotReader } from "./snapshots.js";
import { filterOf, isObject, type StreamItem, type StreamMode, selectKeys } from "./stream_modes.js";
import { Translator } from "./translator.js";
import { UnassignedTasks } from "./unassigned_tasks.js";

export type RunCall = {
  caller: Caller;
  spec: CallSpec;
  input: unknown;
  /** The version that the caller names. */
  named?: NamedVersion | undefined;
  outputKeys?: string | readonly string[] | undefined;
  /** Finds errors that nodes have thrown in this process. */
  findThrown?: FindThrown | undefined;
  /** Is told the id of the run before it is asked for; undefined while only the server knows it. */
  onRun?: ((runId: string | undefined) => void) | undefined;
  /** The run of the node that makes the call. */
  enclosingRunId?: string | undefined;
  /** Is told that the call follows a run that another call has begun. */
  onJoin?: (() => void) | undefined;
};

export type StreamCall = RunCall & {
  modes: readonly StreamMode[];
  subgraphs: boolean;
  /** The run keeps its checkpoints. */
  stored: boolean;
};

/** Runs, and yields what happens. Leaving the iteration leaves the run as it is; an aborted signal cancels it. */
export async function* streamRun(call: StreamCall): AsyncGenerator<StreamItem, void, undefined> {
  const { caller, spec, modes, subgraphs, stored, outputKeys } = call;
  const { shape, config } = spec;
  const inputKeys = keysOfInput(call.input);
  const translator = new Translator({ modes, shape, config, outputKeys, inputKeys, subgraphs, stored });
  const filter = filterOf(modes, { subgraphs, someKeys: outputKeys !== undefined });
  const request = await buildRequest(call, filter);
  if (translator.wantsProgress && stored && goesOn(request)) translator.setProgress(await readProgress(call));
  const run = yield* translateRun(call, request, translator);
  if (run === undefined) return;
  const waits = run.state === RunState.INTERRUPTED && !translator.hasRaised(run.openInterruptIds);
  yield* translator.openQuestionItems(waits ? (await readEnd(caller, spec, run)).interrupts : []);
  yield* translator.heldItems();
  if (run.state === RunState.INTERRUPTED) yield* translator.breakpointItems(run.openInterruptIds);
  throwFailure(call, run);
}

/** Runs, and returns the state at the end, with what is asked then. */
export async function invokeRun(call: RunCall): Promise<unknown> {
  const { caller, spec } = call;
  const request = await buildRequest(call, filterOf([], { subgraphs: false, someKeys: false }));
  const run = await awaitRun(call, request);
  throwFailure(call, run);
  const keys = call.outputKeys ?? spec.shape.shownKeys;
  if (run.state === RunState.SUCCEEDED && run.output !== undefined) {
    return selectKeys(readState(spec.shape, run.output), keys);
  }
  const { values, interrupts } = await readEnd(caller, spec, run);
  const shown = selectKeys(values, keys);
  if (run.state !== RunState.INTERRUPTED) return shown;
  return { ...(isObject(shown) ? shown : {}), [INTERRUPT]: showQuestions(interrupts) };
}

/** The keys that an input writes; `undefined` for a command, and when a call goes on without one. */
function keysOfInput(input: unknown): string[] | undefined {
  return isCommand(input) || !isObject(input) ? undefined : Object.keys(input);
}

async function buildRequest(call: RunCall, filter: ReturnType<typeof filterOf>): Promise<EventRequest> {
  const { spec, input, caller } = call;
  if (spec.config.signal?.aborted) throw abortErrorOf(spec.config.signal);
  if (!answersQuestions(input)) {
    const start = buildStart(spec, input, filter);
    call.onRun?.(start.run?.runId);
    return { start };
  }
  await call.named?.check();
  const ids = looksLikeIdMap(input.resume)
    ? await findQuestions(caller, spec, Object.keys(input.resume))
    : [];
  const resume = buildResume(spec, input, responsesOf(input.resume, ids), filter);
  call.onRun?.(undefined);
  return { resume };
}

/** Those of the ids that are of questions of the thread: of open ones, or else one that was decided. */
async function findQuestions(caller: Caller, spec: CallSpec, ids: readonly string[]): Promise<string[]> {
  const state = await readThreadState(caller, spec, false);
  const open = (state?.interrupts ?? []).map((one) => one.interruptId).filter((id) => ids.includes(id));
  if (open.length > 0) return open;
  const [interruptId] = ids;
  try {
    await callRepeatedly(caller, InterruptService.method.getInterrupt, {
      threadId: spec.thread,
      interruptId,
    });
    return ids.slice(0, 1);
  } catch (error) {
    if (isGraphdError(error)) return [];
    throw error;
  }
}

/** Whether a run begins with tasks that were due before. */
function goesOn(request: EventRequest): boolean {
  return "resume" in request || ("start" in request && request.start.run?.start.case === undefined);
}

async function readProgress({ caller, spec }: RunCall) {
  const state = await readThreadState(caller, spec, true);
  return state === undefined ? [] : new SnapshotReader(spec.shape, spec.config).read(state).tasks;
}

async function readThreadState(caller: Caller, spec: CallSpec, subgraphs: boolean) {
  try {
    return await callRepeatedly(caller, ThreadService.method.getState, { threadId: spec.thread, subgraphs });
  } catch (error) {
    if (isGraphdError(error, "THREAD_NOT_FOUND")) return undefined;
    throw error;
  }
}

/** The items of the events of a run; returns it as it stopped. */
async function* translateRun(
  call: StreamCall,
  first: EventRequest,
  translator: Translator,
): AsyncGenerator<StreamItem, Run | undefined, undefined> {
  const refused = new RefusedRequest(call.enclosingRunId, call.named);
  let request = first;
  let runId = "";
  for (;;) {
    try {
      for await (const event of followTold(call, request)) {
        if (event.runId !== "" && event.runId !== runId) {
          runId = event.runId;
          call.onRun?.(runId);
        }
        if (event.valueOmitted) await restoreOmittedValues(call.caller, event);
        yield* translator.translate(event);
        if (event.kind.case === "end") return event.kind.value.run;
      }
      return undefined;
    } catch (error) {
      if (call.spec.config.signal?.aborted) throw await cancelAborted(call, request, runId);
      if (!isGraphdError(error) || runId !== "") throw error;
      request = await refused.recover(request, error);
      if ("watch" in request) call.onJoin?.();
    }
  }
}

/** The events of a run. Tasks that no worker can run are told of. */
async function* followTold(call: RunCall, request: EventRequest): AsyncGenerator<Event, void, undefined> {
  const unassigned = new UnassignedTasks(call.caller, call.spec.version);
  try {
    for await (const event of followEvents(call.caller, request, { signal: call.spec.config.signal })) {
      unassigned.observe(event);
      yield event;
    }
  } finally {
    unassigned.close();
  }
}

/** Milliseconds that one call waits for the stop of a run; one that takes longer is followed. */
const WAIT = 30_000;
const UNDER_WAY = new Set([RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING]);

/** The run as it stopped. One call starts a run and brings its stop, in place of a stream of its life. */
async function awaitRun(call: RunCall, first: EventRequest): Promise<Run> {
  const { caller } = call;
  const signal = call.spec.config.signal;
  const refused = new RefusedRequest(call.enclosingRunId, call.named);
  let request = first;
  let runId = "";
  for (;;) {
    try {
      if ("watch" in request) return await followToStop(call, request.watch, "now");
      const began = performance.now();
      const run = await startRun(caller, request, { signal, wait: WAIT });
      runId = run.runId;
      call.onRun?.(runId);
      if (!UNDER_WAY.has(run.state)) return run;
      // Before its time the answer comes when no worker can run a task, which the log tells.
      return await followToStop(call, run, performance.now() - began < WAIT ? "beginning" : "now");
    } catch (error) {
      if (signal?.aborted) throw await cancelAborted(call, request, runId);
      if (!isGraphdError(error) || runId !== "") throw error;
      request = await refused.recover(request, error);
      if ("watch" in request) call.onJoin?.();
    }
  }
}

/** Begins a run or goes on with one, and returns it at once. */
export async function beginRun(call: RunCall): Promise<Run> {
  const { caller, spec } = call;
  const { signal } = spec.config;
  const refused = new RefusedRequest(call.enclosingRunId, call.named);
  let request = await buildRequest(call, filterOf([], { subgraphs: false, someKeys: false }));
  for (;;) {
    try {
      if (!("watch" in request)) return await startRun(caller, request, { signal });
      const { threadId, runId } = request.watch;
      return await callRepeatedly(caller, GraphService.method.getRun, { threadId, runId }, { signal });
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      request = await refused.recover(request, error);
    }
  }
}

/** Starts a run or goes on with one. It is the same run when a request is repeated. */
async function startRun(
  caller: Caller,
  request: EventRequest,
  { signal, wait: time = 0 }: { signal?: AbortSignal | undefined; wait?: number },
): Promise<Run> {
  const wait = durationFromMs(time);
  const { startRun, resumeRun } = GraphService.method;
  if ("start" in request) {
    const { run, requestId } = request.start;
    return await callRepeatedly(caller, startRun, { run, requestId, wait }, { signal });
  }
  if (!("resume" in request)) throw new TypeError("a watch starts no run");
  const { resume, requestId } = request.resume;
  return await callRepeatedly(caller, resumeRun, { resume, requestId, wait }, { signal });
}

/** A run, as messages name it. */
type RunName = { threadId?: string; runId?: string };

async function followToStop(call: RunCall, run: RunName, from: "beginning" | "now"): Promise<Run> {
  const { threadId = "", runId = "" } = run;
  const filter = filterOf([], { subgraphs: false, someKeys: false });
  const watch = { threadId, runId, follow: true, filter, start: { case: from, value: {} } };
  for await (const { kind } of followTold(call, { watch })) {
    if (kind.case === "end" && kind.value.run !== undefined) return kind.value.run;
  }
  return await callRepeatedly(call.caller, GraphService.method.getRun, { threadId, runId });
}

/** Stops the run of a call whose signal was aborted, and no other run; returns what to throw. */
async function cancelAborted(call: RunCall, request: EventRequest, knownId: string): Promise<unknown> {
  const { caller, spec } = call;
  if ("watch" in request) return abortErrorOf(spec.config.signal); // another call has begun the run
  try {
    // A request that is repeated is answered with the run that it has begun.
    const runId = knownId || (await startRun(caller, request, {})).runId;
    const cancel = {
      threadId: spec.thread,
      runId,
      // Questions stay open, and what siblings have finished is kept.
      action: CancelRunRequest_Action.PAUSE,
      reason: "the caller has aborted",
      wait: true,
    };
    await caller.unary(GraphService.method.cancelRun, cancel);
  } catch (error) {
    if (!isGraphdError(error)) throw error; // The run has ended, or was never begun.
  }
  return abortErrorOf(spec.config.signal);
}

function abortErrorOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : createAbortError(String(reason ?? "Aborted"));
}

function throwFailure(call: RunCall, run: Run): void {
  const error = errorOfRun(run, call.findThrown);
  if (error !== undefined) throw error;
}

/** The values of the state at the end of a run, and the questions that are open then. */
async function readEnd(
  caller: Caller,
  spec: CallSpec,
  run: Run,
): Promise<{ values: unknown; interrupts: Interrupt[] }> {
  const request = { threadId: spec.thread };
  const state = await callRepeatedly(caller, ThreadService.method.getState, request);
  const interrupts = state.interrupts.filter((one) => run.openInterruptIds.includes(one.interruptId));
  return {
    values: payloadText(state.values) === undefined ? undefined : readState(spec.shape, state.values),
    interrupts,
  };
}

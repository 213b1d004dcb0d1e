/** Graphs that are called from inside a node of another graph. */
import { errorOfFailure, type GraphShape } from "../client/index.js";
import type { Persistence } from "../declare/index.js";
import { hasErrorName } from "../errors/index.js";
import {
  type CalledFailure,
  type CurrentTask,
  currentTask,
  type LocalRun,
  matchesFailure,
  registerCall,
  writeWireContext,
} from "../runtime/index.js";
import { isCommand, type RunnableConfig } from "../values/index.js";
import type { Attachment } from "./attachment.js";
import { type InvokeOptions, timeCall } from "./call_config.js";
import { checkInput } from "./checked_values.js";
import { nodeNames } from "./options.js";

/** The task that a call is a part of; `undefined` for a run of its own, which names another thread. */
export function enclosingTask(config: RunnableConfig | undefined): CurrentTask | undefined {
  const task = currentTask();
  const thread: unknown = config?.configurable?.thread_id;
  return thread === undefined || thread === task?.config.configurable?.thread_id ? task : undefined;
}

export type NestedCall = {
  task: CurrentTask;
  attachment: Attachment;
  persistence: Persistence;
  shape: GraphShape;
  input: unknown;
  options: InvokeOptions;
};

/** Runs a graph inside of a task; returns JSON text of its output. */
export async function callNested(call: NestedCall): Promise<string | undefined> {
  const { task, attachment, shape, input, options, persistence } = call;
  // That of the node leaves the call its grace.
  const isOwn = options.signal !== task.host.signal;
  const { signal } = timeCall({ ...options, signal: isOwn ? options.signal : undefined });
  // Before the first wait: the same call gets the same number on every attempt.
  const index = task.calls++;
  const release = attachment.hold();
  const local: LocalRun = { ...NOT_BEGUN, config: task.config, errors: [] };
  const forget = registerCall(task.host.address, task.host.threadId, local);
  try {
    const version = await attachment.untilReady();
    const isNew = input !== null && input !== undefined && !isCommand(input);
    const given = isNew ? shape.encodeUpdate(await checkInput(attachment.program, input)) : undefined;
    const output = task.host.callGraph({
      graph: attachment.program.name,
      version,
      input: given,
      context: contextOf(task, options),
      persistence,
      interruptBefore: nodeNames(options.interruptBefore),
      interruptAfter: nodeNames(options.interruptAfter),
      stepLimit: options.recursionLimit ?? 0,
      index,
    });
    return (await untilAborted(output, signal)) as string | undefined;
  } catch (error) {
    throw hasErrorName(error, "CalledFailure") ? errorOfCall(error as CalledFailure, local.errors) : error;
  } finally {
    forget();
    release();
  }
}

/** What a promise brings, or the reason of a signal that is aborted before. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  const settled = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { signal: settled.signal });
  });
  return await Promise.race([promise, aborted]).finally(() => settled.abort());
}

/** A call that has begun no run of the thread, and only collects what nodes throw. */
const NOT_BEGUN = { context: undefined, store: undefined, isJoined: true };

/** The very error that a node has thrown in this process, or what its failure tells of it. */
function errorOfCall({ failure }: CalledFailure, thrown: readonly unknown[]): unknown {
  return thrown.findLast((error) => matchesFailure(failure, error)) ?? errorOfFailure(failure);
}

/** What the called graph sees; none for the same as the calling node. */
function contextOf(task: CurrentTask, options: InvokeOptions): string | undefined {
  const context = options.context ?? task.config.context;
  const configurable = options.configurable ?? {};
  if (options.context === undefined && Object.keys(configurable).length === 0) return undefined;
  return writeWireContext(context, configurable, true);
}

/** Runs the code of an assignment, and says what came of it. */

import { Channel } from "../_gen/graphd/v1/event_pb.js";
import { TaskKind, type TaskResult } from "../_gen/graphd/v1/worker_task_pb.js";
import { START } from "../constants.js";
import { type BranchDeclaration, buildGotos, type NodeDeclaration, type Program } from "../declare/index.js";
import {
  GraphInterrupt,
  hasErrorName,
  InvalidUpdateError,
  isGraphBubbleUp,
  isGraphInterrupt,
  isParentCommand,
} from "../errors/index.js";
import { publicName } from "../names/index.js";
import {
  CalledCommand,
  type CurrentTask,
  findCall,
  type LocalRun,
  noteThrown,
  Replay,
  runInTask,
  TEMPORARY,
} from "../runtime/index.js";
import { traceTask } from "../spans/index.js";
import { isSend, type RetryPolicy } from "../values/index.js";
import type { Attempt } from "./attempt.js";
import { readJournal } from "./journal.js";
import { MessageIds } from "./message_ids.js";
import { buildConfig } from "./node_config.js";
import { loadClassesFor, readFailure, readInput } from "./node_input.js";
import {
  buildCancelled,
  buildCompleted,
  buildFailed,
  buildInterrupted,
  buildParentCommand,
  buildResult,
} from "./outcome.js";
import { runReducer } from "./reducer.js";
import { lookUpResult, storeResult } from "./result_cache.js";
import { fileQuestions } from "./thrown_questions.js";
import { withTokens } from "./tokens.js";

/** The result of an attempt. It never throws: every end of a node is a result. */
export function runTask(attempt: Attempt, program: Program): Promise<TaskResult> {
  const { assignment } = attempt;
  const traced = {
    name: `run ${assignment.node || assignment.function}`,
    carrier: assignment.trace,
    attributes: {
      "graphd.thread": assignment.threadId,
      "graphd.run": assignment.runId,
      "graphd.graph": assignment.graph,
      "graphd.graph_version": assignment.graphVersion,
      "graphd.node": assignment.node,
      "graphd.task": assignment.taskId,
      "graphd.attempt": assignment.attempt,
      "graphd.delivery": assignment.delivery,
    },
  };
  return traceTask(traced, () => runUntraced(attempt, program), failedType);
}

function failedType({ outcome }: TaskResult): string | undefined {
  return outcome.case === "failed" ? outcome.value.type : undefined;
}

async function runUntraced(attempt: Attempt, program: Program): Promise<TaskResult> {
  const { assignment } = attempt;
  const local = findCall(attempt.address, assignment.threadId, assignment.runId);
  try {
    await loadClassesFor(assignment);
    if (assignment.kind === TaskKind.REDUCER) {
      return buildResult({ update: runReducer(assignment, program) }, new Replay());
    }
    const work =
      assignment.kind === TaskKind.ROUTER
        ? prepareRouter(attempt, program, local)
        : prepareNode(attempt, program, local);
    return await runWork(work);
  } catch (error) {
    noteThrown(attempt.address, assignment.threadId, error);
    return buildFailed(error, undefined);
  }
}

/** An assignment, prepared: what to call, and how to end it. */
type Work = {
  attempt: Attempt;
  task: CurrentTask;
  call: () => unknown;
  finish: (returned: unknown) => TaskResult | Promise<TaskResult>;
  ids: MessageIds;
  retry: RetryPolicy | undefined;
  cached: TaskResult | undefined;
};

function prepareNode(attempt: Attempt, program: Program, local: LocalRun | undefined): Work {
  const { assignment } = attempt;
  const node = program.nodes.get(publicName(assignment.node));
  const action = node?.action;
  if (node === undefined || action === undefined) {
    throw new ReferenceError(`node "${assignment.node}" is not in this program`);
  }
  const input = readInput(assignment, node.state);
  const task = buildTask(attempt, program, node, local, input);
  const ids = new MessageIds(assignment.emit.includes(Channel.MESSAGES));
  const failure = assignment.failure && readFailure(assignment.failure, local);
  return {
    attempt,
    task,
    ids,
    call: () => (failure ? action.call(input, failure, task.config) : action.call(input, task.config)),
    finish: async (returned) => {
      const result = buildResult(await buildCompleted(returned, program, ids, task.pushed), task.replay);
      storeResult(program, node, assignment, result);
      return result;
    },
    retry: program.policiesOf(node).retry,
    cached: lookUpResult(program, node, assignment),
  };
}

function prepareRouter(attempt: Attempt, program: Program, local: LocalRun | undefined): Work {
  const { assignment } = attempt;
  const source = publicName(assignment.node);
  const branch = program.findBranch(source, assignment.function || assignment.branch);
  if (branch === undefined) {
    throw new ReferenceError(`node "${source}" has no condition "${assignment.function}" in this program`);
  }
  const node = program.nodes.get(source);
  const state =
    source === START ? program.builder.schemas.input : (node?.state ?? program.builder.schemas.state);
  const input = readInput(assignment, state);
  const task = buildTask(attempt, program, node, local, input);
  return {
    attempt,
    task,
    ids: new MessageIds(false),
    call: () => branch.action.call(input, task.config),
    finish: (returned) => buildResult({ gotoTargets: buildGotos(readRoutes(branch, returned)) }, task.replay),
    retry: undefined,
    cached: undefined,
  };
}

/** Where a router leads: names of nodes, and sends. */
function readRoutes(branch: BranchDeclaration, returned: unknown): unknown[] {
  const chosen = Array.isArray(returned) ? returned : [returned];
  const targets = chosen.map((one) => (isSend(one) || !branch.paths ? one : branch.paths[String(one)]));
  targets.forEach((target, at) => {
    if (target === undefined || target === null || target === START) {
      throw new InvalidUpdateError(
        `the condition "${branch.name}" after node "${branch.source}" returned ${describeRoute(chosen[at])}: want ` +
          (branch.paths
            ? `one of ${Object.keys(branch.paths).join(", ")}, or a Send`
            : "a node, END or a Send"),
      );
    }
  });
  return targets;
}

function describeRoute(returned: unknown): string {
  return typeof returned === "string" ? `"${returned}"` : String(returned);
}

function buildTask(
  attempt: Attempt,
  program: Program,
  node: NodeDeclaration | undefined,
  local: LocalRun | undefined,
  input: unknown,
): CurrentTask {
  const { assignment } = attempt;
  const task: CurrentTask = {
    host: attempt,
    replay: readJournal(assignment.journal),
    config: buildConfig({ assignment, program, node, host: attempt, local }),
    input,
    waiting: [],
    pushed: [],
    isStored: !assignment.threadId.startsWith(TEMPORARY),
    calls: 0,
  };
  attempt.replay = task.replay;
  return task;
}

async function runWork(work: Work): Promise<TaskResult> {
  const { attempt, task } = work;
  if (work.cached) return work.cached;
  try {
    const running = runInTask(task, () => withTokens(task, attempt.assignment.emit, work.call));
    const returned = await untilLeft(attempt, running, () => isAsking(task));
    task.replay.checkFinished();
    // A node that caught its question has asked, whatever it returns.
    return isAsking(task) ? buildInterrupted(task.replay, task.waiting) : await work.finish(returned);
  } catch (error) {
    return explainThrown(work, error);
  }
}

function isAsking({ replay, waiting }: CurrentTask): boolean {
  return replay.questions.length > 0 || waiting.length > 0;
}

/**
 * What the code returns. Code that was asked to stop has the grace of the server to end by itself: a promise can't be
 * stopped, and what it has done is done once when its result is kept. Code that asks is left at once.
 */
async function untilLeft(attempt: Attempt, running: unknown, isAsking: () => boolean): Promise<unknown> {
  const { signal, abandoned } = attempt;
  const settled = new AbortController();
  const listening = { once: true, signal: settled.signal };
  return await new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => isAsking() && reject(new GraphInterrupt()), listening);
    abandoned.addEventListener("abort", () => reject(signal.reason as Error), listening);
    if (abandoned.aborted) reject(signal.reason as Error); // before it began
    Promise.resolve(running)
      .then(resolve, reject)
      .finally(() => settled.abort());
  });
}

function explainThrown(work: Work, thrown: unknown): TaskResult {
  const { task, attempt } = work;
  let error = thrown;
  try {
    if (isGraphInterrupt(error) && !isAsking(task)) fileQuestions(task.replay, error);
    if (isGraphInterrupt(error) || (isAsking(task) && isGraphBubbleUp(error))) {
      task.replay.checkFinished();
      return buildInterrupted(task.replay, task.waiting);
    }
    if (error instanceof CalledCommand) return buildResult(error.outcome as never, task.replay);
    if (isParentCommand(error) && attempt.assignment.namespace.length > 0) {
      return buildResult(buildParentCommand(error.command as never, work.ids), task.replay);
    }
    if (isParentCommand(error))
      error = new InvalidUpdateError("a Command for the parent graph, and there is no parent graph");
  } catch (broken) {
    error = broken; // the question has no JSON form, or differs from the journal
  }
  if (attempt.signal.aborted && (error === attempt.signal.reason || hasErrorName(error, "AbortError")))
    return buildCancelled("the node was stopped");
  noteThrown(attempt.address, attempt.assignment.threadId, error);
  try {
    return buildFailed(error, work.retry);
  } catch (broken) {
    return buildFailed(broken, undefined); // retryOn is code as well
  }
}

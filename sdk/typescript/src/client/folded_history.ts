/**
 * The history of a thread, as programs expect it. A call with `durability: "exit"` stores one checkpoint in
 * LangGraph.js. graphd stores all of them, or a crash would lose work; what such a call has made shows as one, the
 * last, and its parent is where the call began.
 */
import { CheckpointSource, type StateSnapshot } from "../_gen/graphd/v1/thread_pb.js";
import { EXIT } from "./labels.js";

/** What the checkpoints of one such call have in common; empty for others. */
export function markOf({ metadata }: StateSnapshot): string {
  return metadata[EXIT] ?? "";
}

/** The checkpoints that show, newest first, each with the parent that shows. */
export async function* foldCheckpoints(
  states: AsyncIterable<StateSnapshot>,
): AsyncGenerator<StateSnapshot, void, undefined> {
  const waiting: StateSnapshot[] = [];
  const shown = new Set<string>();
  const passed = new Set<string>();
  /** Checkpoints with results of other calls. */
  const continued = new Set<string>();
  for await (const state of states) {
    const mark = markOf(state);
    if (mark === "" && state.source === CheckpointSource.LOOP) continued.add(idOf(state.parent));
    for (const later of waiting) {
      skipHiddenParent(later, state);
      if (!continued.has(idOf(state.checkpoint))) hideResults(later, state);
    }
    if (mark === "" || !shown.has(mark)) waiting.push(state);
    shown.add(mark);
    passed.add(idOf(state.checkpoint));
    while (waiting[0] && (markOf(waiting[0]) === "" || hasPassed(waiting[0], passed))) {
      yield waiting.shift() as StateSnapshot;
    }
  }
  yield* waiting;
}

function idOf(checkpoint: StateSnapshot["checkpoint"]): string {
  return checkpoint?.checkpointId ?? "";
}

/** Takes the parent's parent for a checkpoint whose parent does not show. */
function skipHiddenParent(later: StateSnapshot, state: StateSnapshot): void {
  const isHidden = markOf(later) !== "" && markOf(later) === markOf(state) && later !== state;
  if (isHidden && isParent(state, later)) later.parent = state.parent;
}

/** Takes the results of such a call out of the checkpoint at which it began: it has stored them in its own. */
function hideResults(later: StateSnapshot, state: StateSnapshot): void {
  const begins = markOf(later) !== "" && markOf(later) !== markOf(state) && isParent(state, later);
  if (!begins || state.tasks.some((task) => task.failure || task.interrupts.length > 0)) return;
  for (const task of state.tasks) task.result = undefined;
}

function isParent(state: StateSnapshot, later: StateSnapshot): boolean {
  return later.parent !== undefined && idOf(later.parent) === idOf(state.checkpoint);
}

function hasPassed({ parent }: StateSnapshot, passed: ReadonlySet<string>): boolean {
  return parent === undefined || passed.has(parent.checkpointId);
}

export { CalledCommand } from "./called_command.js";
export { CalledFailure } from "./called_failure.js";
export * from "./config.js";
export { interrupt, interruptOf } from "./interrupt.js";
export { findCall, type LocalRun, noteThrown, registerCall, TEMPORARY } from "./local_runs.js";
export { type MemoCall, memo } from "./memo.js";
export { checkDriftIgnore } from "./pointers.js";
export { pushMessage } from "./push_message.js";
export { type Answer, type DriftRules, type Place, Question, Replay, type UsedAnswer } from "./replay.js";
export { RunControl } from "./run_control.js";
export {
  type CurrentTask,
  currentScope,
  currentTask,
  enclosingRunId,
  type GraphCall,
  requiredTask,
  runInTask,
  scope,
  type TaskHost,
} from "./task.js";
export { baseTypesOfError, kindOfError, matchesFailure, stackOfError, textOfError } from "./thrown_error.js";
export type {
  InferInterruptInputType,
  InferInterruptResumeType,
  InferWriterType,
} from "./typed_calls.js";
export { readWireContext, type WireContext, writeWireContext } from "./wire_context.js";

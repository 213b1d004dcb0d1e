import type { TaskAssignment } from "../_gen/graphd/v1/worker_task_pb.js";
import { payloadText, textPayload } from "../codec/index.js";
import { type Program, writeText } from "../declare/index.js";
import { isOverwrite } from "../values/index.js";

/** Combines the writes of a superstep to one key with a reducer of the program. Returns JSON text as it travels. */
export function runReducer(assignment: TaskAssignment, program: Program) {
  const { reduction } = assignment;
  const name = assignment.function || (reduction?.channel ?? "");
  const key = program.keys.get(name);
  const combine = key?.declaration.combine;
  if (key === undefined || combine === undefined || reduction === undefined) {
    throw new ReferenceError(`the key "${name}" has no reducer in this program`);
  }
  const writes = reduction.writes.map((write) => key.read(payloadText(write) ?? "null"));
  const stored = payloadText(reduction.current);
  const current = stored === undefined ? writes.shift() : key.read(stored);
  const combined = combine(current, writes);
  return textPayload(writeText(name, isOverwrite(combined) ? combined.__overwrite__ : combined, key));
}

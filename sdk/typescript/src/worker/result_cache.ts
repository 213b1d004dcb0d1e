/** Results of nodes that need not run again for the same input. */
import { createHash } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type TaskAssignment, type TaskResult, TaskResultSchema } from "../_gen/graphd/v1/worker_task_pb.js";
import { payloadText } from "../codec/index.js";
import type { NodeDeclaration, Program } from "../declare/index.js";
import { readInput } from "./node_input.js";

/** What a cache can do: `InMemoryCache` is one. */
export interface ResultStore {
  read(key: string): Uint8Array | undefined;
  write(key: string, result: Uint8Array, ttl: number | undefined): void;
}

function keyOf(program: Program, node: NodeDeclaration, assignment: TaskAssignment): string | undefined {
  const policy = program.policiesOf(node).cache;
  if (policy === undefined || !program.options.cache) return undefined;
  const prefix = `${program.name}/${node.name}/`;
  if (policy.keyFunc) return prefix + policy.keyFunc([readInput(assignment, node.state)]);
  const sent = payloadText(assignment.sendInput);
  const channels = Object.entries(assignment.channels).map(([name, value]) => [name, payloadText(value)]);
  const input = sent ?? JSON.stringify(channels.sort());
  return prefix + createHash("sha256").update(input).digest("hex");
}

/** The result that the node had for the same input. */
export function lookUpResult(
  program: Program,
  node: NodeDeclaration,
  assignment: TaskAssignment,
): TaskResult | undefined {
  const key = keyOf(program, node, assignment);
  const known = key === undefined ? undefined : (program.options.cache as ResultStore).read(key);
  if (known === undefined) return undefined;
  const result = fromBinary(TaskResultSchema, known);
  if (result.outcome.case === "completed") result.outcome.value.cached = true;
  return result;
}

/** Keeps the result of a node that has run to its end. */
export function storeResult(
  program: Program,
  node: NodeDeclaration,
  assignment: TaskAssignment,
  result: TaskResult,
): void {
  const key = keyOf(program, node, assignment);
  if (key === undefined || result.outcome.case !== "completed") return;
  const { ttl } = program.policiesOf(node).cache ?? {};
  // The answers that it has used are of this task alone.
  const kept = toBinary(TaskResultSchema, { ...result, used: [] });
  (program.options.cache as ResultStore).write(key, kept, ttl === undefined ? undefined : ttl * 1000);
}

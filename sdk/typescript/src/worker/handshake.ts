/** What a worker and a server tell each other when a stream begins, and which refusals end the session. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HelloSchema, Welcome } from "../_gen/graphd/v1/worker_service_pb.js";
import { fromDuration, type Manifest } from "../declare/index.js";
import { type GraphdError, hasErrorName, InvalidGraphError } from "../errors/index.js";
import { KEPT_BYTES } from "./kept_values.js";

const PROTOCOL = 1;
/** Tasks of one process and graph at a time. */
export const SLOTS = 256;
/** Milliseconds before another try to connect; less if leases are short: they end without their worker. */
export const LONGEST_PAUSE = 5_000;

const FINAL = new Set([
  "PROTOCOL_MISMATCH",
  "INVALID_FIELD",
  "FEATURE_DISABLED",
  "WORKER_ID_TAKEN", // the worker of another principal has this id
  "WORKER_REPLACED", // another process uses this worker id
]);

/** Milliseconds. */
export type Intervals = { beat: number; lease: number; longestPause: number };

export function buildHello(
  workerId: string,
  manifest: Manifest,
  heldLeases: Uint8Array[],
): MessageInitShape<typeof HelloSchema> {
  return {
    workerId,
    manifest: {
      deployment: "typescript",
      minProtocol: PROTOCOL,
      maxProtocol: PROTOCOL,
      features: ["memo", "scopes", "call", "drift", "batch"],
      ...manifest,
    },
    heldLeases,
    credit: { totalSlots: SLOTS, revision: 1n },
    keptBytes: KEPT_BYTES,
  };
}

export function readIntervals(welcome: Welcome): Intervals {
  const beat = Math.max(50, fromDuration(welcome.beatInterval) || 1000);
  const lease = fromDuration(welcome.leaseTtl) || 3 * beat;
  return { beat, lease, longestPause: Math.min(LONGEST_PAUSE, Math.max(50, lease / 8)) };
}

/** The version of each graph that the server has taken, and why it has not taken the last that it has not. */
export function readVersions(welcome: Welcome): {
  versions: Map<string, string>;
  refusal: Error | undefined;
} {
  const versions = new Map<string, string>();
  let refusal: Error | undefined;
  for (const { graph, version, problems } of welcome.graphs) {
    if (problems.length === 0) {
      versions.set(graph, version);
      continue;
    }
    const violations = Object.fromEntries(problems.map(({ field, description }) => [field, description]));
    const text = problems
      .map(({ field, description }) => (field ? `${field}: ${description}` : description))
      .join("; ");
    refusal = new InvalidGraphError(`graph "${graph}": ${text}`, { reason: "INVALID_GRAPH", violations });
  }
  return { versions, refusal };
}

/** Whether it is of no use to connect again. */
export function endsSession(problem: GraphdError, isWelcomed: boolean): boolean {
  if (FINAL.has(problem.serverReason) || problem.code === "UNIMPLEMENTED") return true;
  // Later the worker waits for credentials to be put in order: tokens are replaced while workers run.
  return !isWelcomed && hasErrorName(problem, "UnauthenticatedError", "AccessDeniedError", "TLSError");
}

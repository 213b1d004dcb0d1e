/** Turns a program into what the server is told. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import {
  type BranchSpecSchema,
  type GraphSpec,
  GraphSpecSchema,
  type NodeSpecSchema,
  type PolicySpecSchema,
  SubgraphPersistence,
} from "../_gen/graphd/v1/graph_pb.js";
import { Drift } from "../_gen/graphd/v1/interrupt_pb.js";
import { encode, textPayload } from "../codec/index.js";
import { wireName } from "../names/index.js";
import type { DeclaredKey, DeclaredState } from "../state/index.js";
import type { RetryPolicy } from "../values/index.js";
import type { Persistence } from "./compiled_graph.js";
import type { BranchDeclaration, NodeDeclaration } from "./nodes.js";
import { type Program, programOf } from "./program.js";

type Init<S extends Parameters<typeof create>[0]> = MessageInitShape<S>;

const PERSISTENCE: Record<Persistence, SubgraphPersistence> = {
  inherit: SubgraphPersistence.INHERIT,
  persist: SubgraphPersistence.PERSIST,
  disabled: SubgraphPersistence.DISABLED,
};

export const DRIFTS = { fail: Drift.FAIL, ask_again: Drift.ASK_AGAIN, accept: Drift.ACCEPT } as const;

/** Milliseconds as a message. */
export function toDuration(milliseconds: number | undefined): Duration | undefined {
  if (milliseconds === undefined) return undefined;
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = Math.round((milliseconds - seconds * 1000) * 1e6);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos });
}

/** A message as milliseconds. */
export function fromDuration(duration: Duration | undefined): number | undefined {
  return duration && Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}

/** The description of a graph. A child shows its output keys alone. */
export function buildSpec(program: Program, isChild = false): GraphSpec {
  const { builder, options, keys } = program;
  const { state, input, output } = builder.schemas;
  return create(GraphSpecSchema, {
    name: program.name,
    version: options.version,
    channels: [...keys.values()].map(buildChannel),
    input: chosenNames(input, keys),
    output: chosenNames(isChild ? output : state, keys),
    nodes: [...program.nodes.values()].map((node) => buildNode(program, node)),
    edges: builder.edgeList.map(({ sources, target }) => ({ sources: [...sources], target })),
    branches: builder.branchList.map((branch) => buildBranch(program, branch)),
    interruptBefore: [...options.interruptBefore],
    interruptAfter: [...options.interruptAfter],
    stepTimeout: toDuration(program.stepTimeout),
    drift: options.drift && DRIFTS[options.drift],
    driftIgnore: [...options.driftIgnore],
  });
}

function chosenNames(chosen: DeclaredState, keys: ReadonlyMap<string, DeclaredKey>): string[] {
  return [...keys.keys()].every((name) => chosen.keys.has(name)) ? [] : [...chosen.keys.keys()];
}

function buildChannel(key: DeclaredKey) {
  const { reducer, initial } = key.declaration;
  return {
    name: key.name,
    reducer,
    defaultValue: initial && textPayload(key.write(initial())),
    reducerName: reducer === "remote" ? key.name : "",
  };
}

function buildNode(program: Program, node: NodeDeclaration): Init<typeof NodeSpecSchema> {
  const { subgraph } = node;
  return {
    name: wireName(node.name),
    metadata: Object.fromEntries(
      Object.entries(node.metadata).map(([key, value]) => [key, labelText(value)]),
    ),
    reads: chosenNames(node.state, program.keys),
    deferred: node.deferred,
    policy: buildPolicy(program, node),
    kind: subgraph
      ? {
          case: "graph",
          value: { graph: programOf(subgraph).name, persistence: PERSISTENCE[subgraph.persistence] },
        }
      : { case: "remote", value: {} },
  };
}

function buildBranch(program: Program, branch: BranchDeclaration): Init<typeof BranchSpecSchema> {
  const { source, name, paths } = branch;
  return {
    source,
    name,
    decision: { case: "workerRouter", value: name },
    targets: paths ? program.targetsOf(branch) : [],
  };
}

function labelText(value: unknown): string {
  return typeof value === "string" ? value : encode(value ?? null);
}

function buildPolicy(program: Program, node: NodeDeclaration): Init<typeof PolicySpecSchema> {
  const { retry, timeout } = program.policiesOf(node);
  return {
    retry: retry ? [buildRetry(retry)] : [],
    timeout: toDuration(timeout?.runTimeout),
    idleTimeout: toDuration(timeout?.idleTimeout),
    errorHandler: wireName(program.handlerOf(node)),
  };
}

function buildRetry(policy: RetryPolicy) {
  return {
    maxAttempts: policy.maxAttempts ?? 0,
    initialInterval: toDuration(policy.initialInterval),
    backoff: policy.backoffFactor ?? 0,
    maxInterval: toDuration(policy.maxInterval),
    noJitter: policy.jitter === false,
  };
}

/** The config and the runtime of a node, from the run and from the assignment. */
import type { TaskAssignment } from "../_gen/graphd/v1/worker_task_pb.js";
import { payloadText } from "../codec/index.js";
import type { NodeDeclaration, Program } from "../declare/index.js";
import { formatNamespace, publicName, publicThread } from "../names/index.js";
import { interrupt, type LocalRun, readWireContext, type TaskHost } from "../runtime/index.js";
import type { LangGraphRunnableConfig, RunnableConfig } from "../values/index.js";

export type NodePlace = {
  readonly assignment: TaskAssignment;
  readonly program: Program;
  readonly node: NodeDeclaration | undefined;
  readonly host: TaskHost;
  /** The call of this process that the task is for. */
  readonly local: LocalRun | undefined;
};

const NODE_OPTIONS = ["tags", "callbacks", "recursionLimit", "maxConcurrency", "control"];

/** What a node gets as its second argument. */
export function buildConfig({ assignment, program, node, host, local }: NodePlace): LangGraphRunnableConfig {
  const name = publicName(assignment.node);
  const namespace = formatNamespace([...assignment.namespace, `${assignment.node}:${assignment.taskId}`]);
  const given: RunnableConfig = local?.config ?? {};
  const carried = readWireContext(payloadText(assignment.context));
  const layers = [carried.configurable, given.configurable ?? {}];
  const [outer, inner] = carried.isCalled ? layers.reverse() : layers;
  const threadId = publicThread(assignment.threadId);
  const store = local?.store ?? host.store ?? program.options.store;
  return {
    tags: [],
    ...forNodes(given),
    metadata: {
      ...labelsOf(assignment),
      ...given.metadata,
      langgraph_step: assignment.step,
      langgraph_node: name,
      langgraph_triggers: assignment.triggers,
      langgraph_path: assignment.sendInput ? ["__pregel_push", 0] : ["__pregel_pull", name],
      langgraph_checkpoint_ns: namespace,
      ...node?.metadata,
    },
    configurable: {
      thread_id: threadId,
      ...outer,
      ...inner,
      checkpoint_ns: namespace,
      checkpoint_id: undefined,
    },
    context: local?.context !== undefined && !carried.isCalled ? local.context : carried.context,
    signal: host.signal,
    writer: (chunk) => host.emitEvent("custom", "", chunk),
    heartbeat: () => host.reportAlive(),
    interrupt,
    ...(store && { store }),
    executionInfo: {
      checkpointId: assignment.checkpoint?.checkpointId ?? "",
      checkpointNs: namespace,
      taskId: assignment.taskId,
      threadId,
      runId: assignment.runId || undefined,
      nodeAttempt: assignment.attempt,
      nodeFirstAttemptTime: assignment.logicalTime && Number(assignment.logicalTime.seconds) * 1000,
    },
  };
}

/** What models, tools and graphs that a node calls with its config are to know of the call. Modes, keys and ids are its own. */
function forNodes(given: RunnableConfig): RunnableConfig {
  const kept = NODE_OPTIONS.filter((name) => name in given);
  return Object.fromEntries(kept.map((name) => [name, given[name as keyof RunnableConfig]]));
}

function labelsOf({ metadata }: TaskAssignment): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith("graphd.")));
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Channel, type EventFilterSchema } from "../_gen/graphd/v1/event_pb.js";
import { InvalidArgumentError } from "../errors/index.js";
import type { Levels } from "../names/index.js";

export const STREAM_MODES = [
  "values",
  "updates",
  "messages",
  "custom",
  "tasks",
  "checkpoints",
  "debug",
] as const;

/** What of a run a stream shows. */
export type StreamMode = (typeof STREAM_MODES)[number];

/** One thing that a stream shows: how, in which graph, and what. */
export type StreamItem = { mode: StreamMode; levels: Levels; data: unknown };

const CHANNELS: Record<StreamMode, readonly Channel[]> = {
  values: [Channel.VALUES],
  updates: [Channel.UPDATES],
  messages: [Channel.MESSAGES, Channel.UPDATES, Channel.VALUES, Channel.TASKS],
  custom: [Channel.CUSTOM],
  tasks: [Channel.TASKS, Channel.UPDATES],
  checkpoints: [Channel.DEBUG],
  debug: [Channel.DEBUG, Channel.UPDATES],
};

/** The modes that a caller asks for. Throws for one that there is not. */
export function readStreamModes(given: StreamMode | readonly StreamMode[]): readonly StreamMode[] {
  const modes = typeof given === "string" ? [given] : given;
  for (const mode of modes) {
    if (STREAM_MODES.includes(mode)) continue;
    const problem = `unknown stream mode ${JSON.stringify(mode)}: want one of ${STREAM_MODES.join(", ")}`;
    throw new InvalidArgumentError(problem, { violations: { streamMode: problem } });
  }
  return [...new Set(modes)];
}

/** The events that the modes need. */
export function filterOf(
  modes: readonly StreamMode[],
  options: { subgraphs: boolean; someKeys: boolean },
): MessageInitShape<typeof EventFilterSchema> {
  if (modes.length === 0) return { channels: [Channel.CUSTOM], customNames: ["nothing"], depth: 0 };
  const channels = new Set(modes.flatMap((mode) => CHANNELS[mode]));
  if (options.someKeys) channels.add(Channel.UPDATES);
  // Custom events of subgraphs always show; those of the other kinds are left out later.
  const isDeep = options.subgraphs || modes.includes("custom");
  return { channels: [...channels].sort(), ...(isDeep ? {} : { depth: 0 }) };
}

/** The part of a state that a call shows: some keys, the value of a single one, or all of it. */
export function selectKeys(state: unknown, keys: string | readonly string[] | undefined): unknown {
  if (keys === undefined || !isObject(state)) return state;
  if (typeof keys === "string") return state[keys];
  return Object.fromEntries(keys.filter((key) => key in state).map((key) => [key, state[key]]));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

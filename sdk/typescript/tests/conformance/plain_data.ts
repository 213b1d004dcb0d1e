/** Results of the SDK as the plain data that case files hold. */

import { isCommand, isSend, type StateSnapshot } from "../../src/index.js";
import { isMessage, toStoredMessage } from "../../src/messages/stored_message.js";

type Fields = Record<string, any>;

export function plain(value: any): any {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(plain);
  if (isMessage(value)) return toStoredMessage(value);
  if (isCommand(value)) return { $command: plainFields({ ...value, lg_name: undefined }) };
  if (isSend(value)) return { $send: [value.node, plain(value.args)] };
  // What a question says of the one that it replaces is graphd's own.
  if (typeof value.id === "string" && "value" in value)
    return plainFields({ ...value, replaces: undefined, differs: undefined });
  return plainFields(value);
}

function plainFields(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, plain(item)]),
  );
}

const MESSAGE_METADATA = new Set([
  "langgraph_step",
  "langgraph_node",
  "langgraph_triggers",
  "langgraph_path",
]);

/** An item of a stream: configs are their checkpoints, and metadata of messages is what is compared. */
export function plainEvent(event: unknown): unknown {
  const shown = plain(event);
  for (const part of Array.isArray(shown) ? shown : [shown]) shorten(part);
  return shown;
}

function shorten(part: any): void {
  if (typeof part !== "object" || part === null) return;
  if ("payload" in part) shorten(part.payload);
  if (Array.isArray(part)) part.forEach(shorten);
  for (const name of ["config", "parentConfig"]) {
    if (part[name]?.configurable) part[name] = { cp: part[name].configurable.checkpoint_id };
  }
  if (part.config && part.metadata) delete part.metadata.run_id;
  if ("langgraph_node" in part) {
    for (const key of Object.keys(part)) if (!MESSAGE_METADATA.has(key)) delete part[key];
  }
}

/** A snapshot, with ids in place of configs. */
export function plainSnapshot(state: StateSnapshot): Fields {
  const { config, parentConfig, metadata, tasks } = state as Fields;
  const configurable = config?.configurable ?? {};
  return {
    values: plain(state.values),
    next: [...state.next],
    ...(metadata && { source: metadata.source, step: metadata.step }),
    ...(Object.keys(metadata?.parents ?? {}).length > 0 && { parents: metadata.parents }),
    checkpoint: configurable.checkpoint_id ?? null,
    parent: parentConfig?.configurable?.checkpoint_id ?? null,
    tasks: tasks.map(plainTask),
    interrupts: tasks.flatMap((task: Fields) => plain(task.interrupts ?? [])),
    ...(metadata && configurable.checkpoint_ns && { ns: configurable.checkpoint_ns }),
  };
}

function plainTask(task: Fields): Fields {
  const { id, name, error, interrupts = [], state, result } = task;
  return {
    id,
    name,
    ...(error && { error: error.name }),
    ...(interrupts.length > 0 && { interrupts: plain(interrupts) }),
    ...(state && {
      state: "values" in state ? plainSnapshot(state) : { ns: state.configurable.checkpoint_ns },
    }),
    ...(result !== undefined && { result: plain(result) }),
  };
}

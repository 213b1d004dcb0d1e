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
  return plainFields(value);
}

function plainFields(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, plain(item)]),
  );
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
    ...(configurable.checkpoint_ns && { ns: configurable.checkpoint_ns }),
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

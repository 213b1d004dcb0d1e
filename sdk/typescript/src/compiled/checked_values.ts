/** Values that a program hands to its graph, read by its schemas before the server is asked. */
import type { StateUpdate } from "../client/index.js";
import { END } from "../constants.js";
import type { Program } from "../declare/index.js";
import { parseNamespace } from "../names/index.js";
import {
  checkWrites,
  type DeclaredKey,
  type DeclaredState,
  isZodObject,
  readUpdate,
} from "../state/index.js";
import { Command, isCommand, type RunnableConfig } from "../values/index.js";
import type { InvokeOptions } from "./call_config.js";

type Keys = ReadonlyMap<string, DeclaredKey>;

/** The input as its schemas read it, and those of the state. They throw for what they do not take. */
export async function checkInput(program: Program, input: unknown): Promise<unknown> {
  const { state, input: declared } = program.builder.schemas;
  if (isCommand(input)) return await checkCommand(input, program.isRoot ? [] : [declared, state]);
  if (typeof input !== "object" || input === null || Array.isArray(input) || program.isRoot) return input;
  if (declared === state) return await checkUpdate(input, [state]);
  if (!isZodObject(declared.source)) return await checkUpdate(input, [declared, state]);
  const whole = Object.entries({ ...withoutValues(declared.keys), ...input });
  return Object.fromEntries(await readBySchemas(whole, [declared, state]));
}

/** What `updateState` writes, as the schemas of the state read it. */
export async function checkStateUpdate(
  program: Program,
  { configurable }: RunnableConfig,
  update: StateUpdate,
): Promise<StateUpdate> {
  const { values, asNode } = update;
  const graph = program.findGraph(parseNamespace(String(configurable?.checkpoint_ns ?? ""))) ?? program;
  if (graph.isRoot || values === null || values === undefined || asNode === END || asNode === "__copy__")
    return update;
  const { state } = graph.builder.schemas;
  const checked = isCommand(values)
    ? await checkCommand(values, [state])
    : await checkUpdate(values, [state]);
  return { ...update, values: checked };
}

/** Throws for a context that its schema does not take. A call that may join a run, which has one, may leave it out. */
export function checkContext(program: Program, config: InvokeOptions, isRequired: boolean): void {
  const schema = program.builder.schemas.context;
  if (!isZodObject(schema)) return;
  const parser = schema as unknown as { parse(value: unknown): unknown };
  if (config.context !== undefined) parser.parse(config.context);
  else if (isRequired) parser.parse(config.configurable ?? {});
}

async function checkCommand(command: Command, states: readonly DeclaredState[]): Promise<Command> {
  const { graph, resume, goto, update } = command;
  if (update === undefined || update === null) return command;
  const checked = (await checkUpdate(update, states)) as Record<string, unknown>;
  return new Command({ graph, resume, goto, update: checked } as never);
}

/** A list of pairs stays one: it may name a key twice. */
async function checkUpdate(update: unknown, states: readonly DeclaredState[]): Promise<unknown> {
  if (!states.some(({ hasSchemas }) => hasSchemas)) return update;
  const writes = await readBySchemas(readUpdate(update, undefined), states);
  return Array.isArray(update) ? writes : Object.fromEntries(writes);
}

/** Writes as one schema after the other reads them. What one leaves without a value is not written. */
async function readBySchemas(
  writes: [string, unknown][],
  states: readonly DeclaredState[],
): Promise<[string, unknown][]> {
  let left = writes;
  for (const { keys } of states) {
    left = (await checkWrites(left, keys)).filter(([, value]) => value !== undefined);
  }
  return left;
}

/** All keys of an input without values: schemas throw for those that are required. */
function withoutValues(keys: Keys): Record<string, undefined> {
  return Object.fromEntries([...keys.keys()].map((name) => [name, undefined]));
}

/** Performs the steps of a case. */
import { Command, RunControl, Send } from "../../src/index.js";
import { type Bindings, bind, match, matchGroups, substitute } from "./matching.js";
import { plain, plainEvent, plainSnapshot } from "./plain_data.js";
import { type Bodies, type GraphDescription, World } from "./program.js";
import { toJavaScript } from "./shapes.js";

type Fields = Record<string, any>;
export type Case = {
  id: string;
  title: string;
  graphs: GraphDescription[];
  steps: { do: Fields; expect?: Fields }[];
};

/** Steps that a client in JavaScript can do; the others look at what only Python shows. */
const OPERATIONS = new Set([
  "stream",
  "stream_cancelled",
  "invoke",
  "get_state",
  "get_state_history",
  "update_state",
  "bulk_update_state",
  "set_mem",
  "check_mem",
  "delete_thread",
]);

export class Player {
  private readonly world: World;
  private possible: Bindings[] = [new Map()];

  constructor(
    private readonly played: Case,
    bodies?: Bodies,
  ) {
    this.world = new World(bodies);
  }

  /** Performs every step; throws at the first that differs. */
  async play(): Promise<void> {
    try {
      this.world.build(this.played.graphs);
    } catch (error) {
      throw new Error(`${this.played.id}: ${(error as Error).message}`);
    }
    for (const [at, { do: step, expect: expected = {} }] of this.played.steps.entries()) {
      if (!OPERATIONS.has(step.op)) continue;
      try {
        await this.perform(step, toJavaScript(step, expected));
      } catch (error) {
        throw new Error(
          `${this.played.id} step ${at + 1} ${JSON.stringify(step)}: ${(error as Error).message}`,
        );
      }
    }
  }

  private get known(): Bindings {
    return this.possible[0] as Bindings;
  }

  private narrow(possible: (Bindings | undefined)[], problem: string): void {
    const left = possible.filter((one) => one !== undefined);
    if (left.length === 0) throw new Error(problem);
    this.possible = left;
  }

  private check(expected: unknown, actual: unknown): void {
    const problem = `\n  expected ${JSON.stringify(expected)}\n  got      ${JSON.stringify(actual)}`;
    this.narrow(
      this.possible.map((known) => match(expected, actual, known)),
      problem,
    );
  }

  private graphOf({ graph }: Fields) {
    const { graphs } = this.world;
    return (graphs.get(graph ?? "g") ?? [...graphs.values()].at(-1)) as NonNullable<
      ReturnType<typeof graphs.get>
    >;
  }

  private async configOf(step: Fields): Promise<Fields> {
    for (const [symbol, where] of Object.entries<Fields>(step.bind ?? {})) {
      const states = [];
      for await (const one of this.graphOf(step).getStateHistory({
        configurable: { thread_id: where.thread },
      }))
        states.push(one);
      const real = (states[where.history_index] as Fields).config.configurable.checkpoint_id;
      this.narrow(
        this.possible.map((known) => bind(symbol, real, known)),
        `${symbol} is not ${real}`,
      );
    }
    const { recursion_limit: recursionLimit, ...given } = step.config ?? {};
    const configurable: Fields = { ...given.configurable };
    if ("thread" in step) configurable.thread_id = step.thread;
    if ("at_checkpoint" in step) {
      Object.assign(configurable, {
        checkpoint_ns: "",
        checkpoint_id: substitute(step.at_checkpoint, this.known),
      });
    }
    for (const name of ["checkpoint_ns", "checkpoint_map"]) {
      if (name in step) configurable[name] = substitute(step[name], this.known);
    }
    const runId = given.metadata?.run_id;
    return {
      ...given,
      ...(runId && { runId }),
      ...(recursionLimit !== undefined && { recursionLimit }),
      configurable,
    };
  }

  private inputOf(given: unknown): any {
    return revive(substitute(given, this.known));
  }

  private async perform(step: Fields, expected: Fields): Promise<void> {
    switch (step.op) {
      case "set_mem":
        Object.assign(this.world.mem, step.mem);
        return;
      case "check_mem":
        return await this.checkMem(step, expected);
      case "delete_thread":
        return await this.world.saver.deleteThread(step.thread);
      case "stream":
      case "stream_cancelled":
      case "invoke":
        return await this.performRun(step, expected);
      default:
        return await this.performState(step, expected);
    }
  }

  private async checkMem({ after = 0 }: Fields, { mem }: Fields): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, after * 1_000));
    const actual = Object.fromEntries(Object.keys(mem).map((name) => [name, this.world.mem[name]]));
    this.check(mem, actual);
  }

  private async performRun(step: Fields, expected: Fields): Promise<void> {
    this.world.ran.length = 0;
    const events: unknown[] = [];
    let result: unknown;
    const error = await attempt(async () => {
      const [graph, config] = [this.graphOf(step), await this.configOf(step)];
      const input = this.inputOf(step.input);
      if (step.op === "invoke") {
        result = await graph.invoke(input, config);
        return;
      }
      const options: Fields = { ...config, ...optionsOf(step), ...this.controlOf(step) };
      const leaving = new AbortController();
      if (step.op === "stream_cancelled") options.signal = leaving.signal;
      const isDue = () =>
        events.length >= expected.events?.length && this.world.ran.length >= expected.ran?.length;
      const watching = setInterval(() => isDue() && leaving.abort(), 10);
      try {
        for await (const event of await graph.stream(input, options)) events.push(plainEvent(event));
      } finally {
        clearInterval(watching);
      }
    });
    const isLeft = step.op === "stream_cancelled" && (error as Fields | undefined)?.name === "AbortError";
    if (!isLeft) checkError(expected.error, error, events);
    if ("result" in expected) this.check(expected.result, plain(result));
    if ("events" in expected) this.checkEvents(expected, events);
    this.checkRan(expected);
  }

  private controlOf({ control: given }: Fields): Fields {
    if (given === undefined) return {};
    const control = new RunControl();
    this.world.control = control;
    if (given.startsWith("drained:")) control.requestDrain(given.slice("drained:".length));
    return { control };
  }

  private checkEvents({ events: all, groups: sizes, until }: Fields, come: unknown[]): void {
    const isLast = until === "last values";
    const [wanted, groups] = isLast ? [statesOf(all), undefined] : [all, sizes];
    const events = isLast ? statesOf(come) : until === "failure" ? come.slice(0, wanted.length) : come;
    const problem = `events\n  expected ${JSON.stringify(wanted)}\n  got      ${JSON.stringify(events)}`;
    this.narrow(
      this.possible.flatMap((known) => matchGroups(wanted, events, groups, known)),
      problem,
    );
  }

  private checkRan({ ran: wanted, ran_groups: groups }: Fields): void {
    if (wanted === undefined) return;
    const { ran } = this.world;
    if (matchGroups(wanted, [...ran], groups ?? [ran.length], new Map()).length === 0) {
      throw new Error(`ran ${ran} and not ${wanted}`);
    }
  }

  private async performState(step: Fields, expected: Fields): Promise<void> {
    let shown: unknown;
    const error = await attempt(async () => {
      const [graph, config] = [this.graphOf(step), await this.configOf(step)];
      if (step.op === "update_state") {
        const written = await graph.updateState(config, this.inputOf(step.values), step.as_node ?? undefined);
        shown = written.configurable.checkpoint_id;
      } else if (step.op === "bulk_update_state") {
        const supersteps = step.supersteps.map((updates: unknown[][]) => ({
          updates: updates.map(([values, asNode, taskId]) => ({
            values: this.inputOf(values),
            asNode,
            taskId,
          })),
        }));
        const written = await graph.bulkUpdateState(config, supersteps);
        shown = written.configurable.checkpoint_id;
      } else if (step.op === "get_state") {
        shown = plainSnapshot(await graph.getState(config, { subgraphs: step.subgraphs === true }));
      } else shown = await this.readHistory(step, config);
    });
    checkError(expected.error, error);
    const wanted = expected.snapshot ?? expected.history ?? expected.new_checkpoint;
    if (expected.error === undefined && wanted !== undefined) this.check(wanted, shown);
  }

  private async readHistory(step: Fields, config: Fields): Promise<unknown[]> {
    const before = step.before && { configurable: { checkpoint_id: substitute(step.before, this.known) } };
    const options = { limit: step.limit, filter: step.filter, before } as Fields;
    const rows = [];
    for await (const state of this.graphOf(step).getStateHistory(config, options))
      rows.push(plainSnapshot(state));
    return rows;
  }
}

function revive(value: any): any {
  if (Array.isArray(value)) return value.map(revive);
  if (typeof value !== "object" || value === null) return value;
  if ("$send" in value) return new Send(value.$send[0], revive(value.$send[1]));
  if ("$command" in value) return new Command(revive(value.$command));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item)]));
}

function optionsOf(step: Fields): Fields {
  const { mode, subgraphs, interrupt_before, interrupt_after, output_keys, durability } = step;
  return {
    streamMode: mode ?? "updates",
    ...(subgraphs && { subgraphs }),
    ...(interrupt_before && { interruptBefore: interrupt_before }),
    ...(interrupt_after && { interruptAfter: interrupt_after }),
    ...(output_keys && { outputKeys: output_keys }),
    ...(durability && { durability }),
  };
}

/** The states of the root graph that were shown before a failure. */
function statesOf(events: any[]): unknown[] {
  const shown = events.filter(
    (event) => event.at(-2) === "values" && (event.length === 2 || !event[0].length),
  );
  return shown.filter((event) => !("__interrupt__" in event.at(-1)));
}

async function attempt(code: () => Promise<void>): Promise<unknown> {
  try {
    await code();
    return undefined;
  } catch (error) {
    return error ?? new Error("undefined was thrown");
  }
}

function checkError(expected: Fields | undefined, error: unknown, got?: unknown): void {
  if (expected === undefined && error !== undefined) throw error;
  if (expected !== undefined && error === undefined) {
    throw new Error(`did not throw ${JSON.stringify(expected)}, but gave ${JSON.stringify(got)}`);
  }
}

/** Whether the steps of a case show in JavaScript what they show in Python: there are no versions of streams. */
export function isPlayable({ steps }: Case): boolean {
  return steps.every(({ do: step }) => step.version === undefined);
}

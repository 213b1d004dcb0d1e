/** What nodes and callers say: commands, sends and overwrites. */

const PARENT = "__parent__";

/** The graph around the one whose node returns a command. */
export type ParentGraph = typeof PARENT;

export type SendOptions = { timeout?: number };

/** Runs a node with an input of its own, in place of the state. */
export class Send<Node extends string = string, Args = any> {
  readonly lg_name = "Send";
  readonly node: Node;
  readonly args: Args;
  readonly timeout: number | undefined;

  constructor(node: Node, args: Args, options: SendOptions = {}) {
    this.node = node;
    this.args = args;
    this.timeout = options.timeout;
  }

  toJSON(): { lg_name: "Send"; node: Node; args: Args } {
    return { lg_name: "Send", node: this.node, args: this.args };
  }
}

export type CommandParams<
  Resume = unknown,
  Update = Record<string, unknown>,
  Nodes extends string = string,
> = {
  /** The graph that is meant: the own one, or `Command.PARENT`. */
  graph?: string;
  /** Keys of the state to write. */
  update?: Update | [string, unknown][];
  /** The answer to the open question, or answers by the ids of their questions. */
  resume?: Resume;
  /** Nodes to run next. */
  goto?: Nodes | Send<Nodes> | (Nodes | Send<Nodes>)[];
};

/** Changes the state, goes somewhere, or answers questions. */
export class Command<Resume = unknown, Update = Record<string, unknown>, Nodes extends string = string> {
  static readonly PARENT: ParentGraph = PARENT;

  readonly lg_name = "Command";
  readonly lc_direct_tool_output = true;
  graph: string | undefined;
  update: Update | [string, unknown][] | undefined;
  resume: Resume | undefined;
  goto: Nodes | Send<Nodes> | (Nodes | Send<Nodes>)[];

  constructor(given: CommandParams<Resume, Update, Nodes>) {
    this.graph = given.graph;
    this.update = given.update;
    this.resume = given.resume;
    this.goto = given.goto === undefined ? [] : asList(given.goto);
  }

  toJSON(): Record<string, unknown> {
    const { graph, update, resume, goto } = this;
    return { lg_name: "Command", graph, update, resume, goto };
  }
}

function asList<T>(given: T | T[]): T[] {
  return Array.isArray(given) ? given : [given];
}

function hasName(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && (value as { lg_name?: unknown }).lg_name === name;
}

export function isCommand(value: unknown): value is Command {
  return hasName(value, "Command");
}

export function isSend(value: unknown): value is Send {
  return hasName(value, "Send");
}

/** Replaces the value of a key instead of combining it. */
export class Overwrite<T = unknown> {
  readonly lg_name = "Overwrite";
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  get __overwrite__(): T {
    return this.value;
  }

  toJSON(): { __overwrite__: T } {
    return { __overwrite__: this.value };
  }

  static isInstance(value: unknown): value is Overwrite {
    return isOverwrite(value);
  }
}

/** What may stand in an update in place of a value that is combined. */
export type OverwriteValue<T = unknown> = Overwrite<T> | { readonly __overwrite__: T };

export function isOverwrite(value: unknown): value is OverwriteValue {
  return typeof value === "object" && value !== null && "__overwrite__" in value;
}

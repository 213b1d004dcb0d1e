/** The keys of a state: what becomes of the values that are written to them. */

export type Reducer<Value, Update = Value> = (current: Value, update: Update) => Value;
export type SingleReducer<Value, Update = Value> =
  | { reducer: Reducer<Value, Update>; default?: () => Value }
  | { value: Reducer<Value, Update>; default?: () => Value };

/** Combines all values of a superstep. */
export type DeltaReducer<Value, Update = any> = (current: Value, writes: Update[]) => Value;

/** What the server is told of a key. */
export type ChannelDeclaration = {
  /** A reducer of the server, or "remote" for one of the program. */
  reducer: string;
  /** The value before the first write; left out, the key is unset. */
  initial?: () => unknown;
  /** Combines the writes of one superstep; only of "remote". */
  combine?: (current: unknown, writes: unknown[]) => unknown;
};

/** One key. The type parameters say what nodes read, and what they may write. */
export abstract class BaseChannel<Value = unknown, Update = Value> {
  declare readonly ValueType: Value;
  declare readonly UpdateType: Update;
  abstract readonly lc_graph_name: string;

  abstract declare(): ChannelDeclaration;

  /** Whether two declarations of one key may stand beside each other. */
  equals(other: BaseChannel<any, any>): boolean {
    return this === other || this.lc_graph_name === other.lc_graph_name;
  }
}

/** Keeps what was written last; one write per superstep. */
export class LastValue<Value> extends BaseChannel<Value, Value> {
  readonly lc_graph_name = "LastValue";

  constructor(private readonly initial?: () => Value) {
    super();
  }

  declare(): ChannelDeclaration {
    return { reducer: "last", ...(this.initial && { initial: this.initial }) };
  }
}

/** Keeps one of the values that were written in a superstep. */
export class AnyValue<Value> extends BaseChannel<Value, Value> {
  readonly lc_graph_name = "AnyValue";

  declare(): ChannelDeclaration {
    return { reducer: "any" };
  }
}

/** Forgets its value after the next superstep. */
export class EphemeralValue<Value> extends BaseChannel<Value, Value> {
  readonly lc_graph_name = "EphemeralValue";

  constructor(private readonly guard = true) {
    super();
  }

  declare(): ChannelDeclaration {
    return { reducer: this.guard ? "ephemeral" : "any" };
  }
}

/** Is not stored with the checkpoints. */
export class UntrackedValueChannel<Value> extends BaseChannel<Value, Value> {
  readonly lc_graph_name = "UntrackedValue";

  declare(): ChannelDeclaration {
    return { reducer: "untracked" };
  }
}

/** Collects the values of a superstep, or of all. */
export class Topic<Value> extends BaseChannel<Value[], Value | Value[]> {
  readonly lc_graph_name = "Topic";

  constructor(private readonly options: { unique?: boolean; accumulate?: boolean } = {}) {
    super();
    if (options.unique) throw new TypeError("Topic: unique is not supported; use a reducer that does it");
  }

  declare(): ChannelDeclaration {
    return { reducer: this.options.accumulate ? "topic" : "topic_once" };
  }
}

/** Combines what is written with a function of the program. */
export class BinaryOperatorAggregate<Value, Update = Value> extends BaseChannel<Value, Update> {
  readonly lc_graph_name = "BinaryOperatorAggregate";

  constructor(
    readonly operator: Reducer<Value, Update>,
    readonly initialValueFactory?: () => Value,
  ) {
    super();
  }

  declare(): ChannelDeclaration {
    const { operator, initialValueFactory: initial } = this;
    const known = serverReducerOf(operator);
    if (known !== undefined) return { reducer: known, ...(initial && { initial }) };
    const combine = (current: unknown, writes: unknown[]): unknown =>
      writes.reduce((value, write) => operator(value as Value, write as Update), current);
    return { reducer: "remote", combine, ...(initial && { initial }) };
  }

  override equals(other: BaseChannel<any, any>): boolean {
    return super.equals(other) && (other as BinaryOperatorAggregate<any, any>).operator === this.operator;
  }
}

/** Combines all values of a superstep in one call of its reducer. */
export class DeltaChannel<Value, Update = Value> extends BaseChannel<Value, Update> {
  readonly lc_graph_name = "DeltaChannel";

  constructor(
    readonly reducer: DeltaReducer<Value, Update>,
    private readonly options: { initialValueFactory?: () => Value; snapshotFrequency?: number } = {},
  ) {
    super();
  }

  declare(): ChannelDeclaration {
    const initial = this.options.initialValueFactory;
    const combine = (current: unknown, writes: unknown[]): unknown =>
      this.reducer(current as Value, writes as Update[]);
    return { reducer: "remote", combine, ...(initial && { initial }) };
  }
}

/** Reducers that the server has itself, known by identity. */
const SERVER_REDUCERS = Symbol.for("graphd.server_reducer");

/** Says that a reducer of the server does what a function does. */
export function markServerReducer<F extends (...args: any[]) => unknown>(reducer: F, name: string): F {
  return Object.defineProperty(reducer, SERVER_REDUCERS, { value: name });
}

function serverReducerOf(reducer: unknown): string | undefined {
  return (reducer as { [SERVER_REDUCERS]?: string })[SERVER_REDUCERS];
}

export function isDeltaChannel(value: unknown): value is DeltaChannel<any, any> {
  return (value as { lc_graph_name?: unknown } | null | undefined)?.lc_graph_name === "DeltaChannel";
}

export function isChannel(value: unknown): value is BaseChannel {
  return typeof (value as { lc_graph_name?: unknown } | null | undefined)?.lc_graph_name === "string";
}

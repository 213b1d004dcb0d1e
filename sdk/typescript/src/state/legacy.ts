/** The older way to declare a state: `{ channels: { key: { value, default } } }`. */
import {
  type BaseChannel,
  BinaryOperatorAggregate,
  isChannel,
  LastValue,
  type Reducer,
} from "../channels/index.js";

/** `value` is the older name of `reducer`; null is a key that keeps what was written last. */
export type LegacyChannel<Value> = {
  value?: Reducer<Value, any> | null;
  reducer?: Reducer<Value, any> | null;
  default?: () => Value;
} | null;

/** Channels without a type of the state. */
export type AnyLegacyChannels = Record<string, LegacyChannel<any>>;

/** What nodes read of channels without a type of the state: what the default is, or what the reducer returns. */
export type LegacyState<D> = {
  [K in keyof D]: D[K] extends { default: () => infer V }
    ? V
    : D[K] extends { value: (...args: any[]) => infer V } | { reducer: (...args: any[]) => infer V }
      ? V
      : any;
};

export type LegacyChannels<State> = { [K in keyof State]: LegacyChannel<State[K]> };

type Declared = {
  value?: Reducer<unknown> | null;
  reducer?: Reducer<unknown> | null;
  default?: () => unknown;
};

/** The channels of a state that is declared the older way. */
export function readLegacyChannels(channels: Record<string, unknown>): Record<string, BaseChannel<any, any>> {
  return Object.fromEntries(
    Object.entries(channels).map(([name, given]) => [name, readChannel(name, given)]),
  );
}

function readChannel(name: string, given: unknown): BaseChannel<any, any> {
  if (given === null || given === undefined) return new LastValue();
  if (isChannel(given)) return given;
  const made: unknown = typeof given === "function" ? given() : undefined;
  if (isChannel(made)) return made;
  if (typeof given !== "object") {
    throw new TypeError(
      `the channel ${JSON.stringify(name)} must be null or { value, default }, not ${typeof given}`,
    );
  }
  const { value, reducer, default: initial } = given as Declared;
  const combine = reducer ?? value;
  return combine ? new BinaryOperatorAggregate(combine, initial) : new LastValue(initial);
}

/** Annotations: the keys of a state, as LangGraph.js programs declare them. */
import {
  type BaseChannel,
  BinaryOperatorAggregate,
  isChannel,
  LastValue,
  type Reducer,
  type SingleReducer,
} from "../channels/index.js";
import type { StateDefinition, StateType, UpdateType } from "./types.js";

/** The keys of a state. `State` and `Update` are types only. */
export class AnnotationRoot<SD extends StateDefinition> {
  readonly lc_graph_name = "AnnotationRoot";
  declare readonly State: StateType<SD>;
  declare readonly Update: UpdateType<SD>;
  declare readonly Node: (state: StateType<SD>, config?: any) => UpdateType<SD> | Promise<UpdateType<SD>>;

  constructor(readonly spec: SD) {}
}

export interface AnnotationFunction {
  /** A key whose writes a reducer combines. */
  <Value, Update = Value>(reduced: SingleReducer<Value, Update>): BaseChannel<Value, Update>;
  /** A key that keeps what was written last. */
  <Value>(): BaseChannel<Value, Value>;
  Root: <SD extends StateDefinition>(spec: SD) => AnnotationRoot<SD>;
}

function annotate(reduced?: SingleReducer<unknown, unknown>): BaseChannel<any, any> {
  if (reduced === undefined || reduced === null) return new LastValue();
  if (isChannel(reduced)) return reduced;
  const reducer = (reduced as { reducer?: unknown }).reducer ?? (reduced as { value?: unknown }).value;
  if (typeof reducer === "function") {
    return new BinaryOperatorAggregate(reducer as Reducer<unknown, unknown>, reduced.default);
  }
  if (typeof reduced.default === "function") return new LastValue(reduced.default);
  throw new TypeError("Annotation takes { reducer, default }, or nothing for the last value");
}

/** Declares a key of a state: `Annotation<string>()`, `Annotation<string[]>({ reducer, default })`. */
export const Annotation: AnnotationFunction = Object.assign(annotate, {
  Root: <SD extends StateDefinition>(spec: SD): AnnotationRoot<SD> => new AnnotationRoot(spec),
}) as AnnotationFunction;

/** The channel that stands for a key in a definition. */
export function channelOf(name: string, declared: unknown): BaseChannel<any, any> {
  const channel = typeof declared === "function" && !isChannel(declared) ? declared() : declared;
  if (!isChannel(channel)) {
    throw new TypeError(
      `the key ${JSON.stringify(name)} of the state is no annotation: use Annotation<type>()`,
    );
  }
  return channel;
}

/** How graphs are begun: by an annotation, a schema, or channels. */
import type { START } from "../constants.js";
import type {
  AnyLegacyChannels,
  ExtractStateType,
  ExtractUpdateType,
  LegacyChannels,
  LegacyState,
  StateInput,
} from "../state/index.js";
import { StateGraphBuilder } from "./state_graph.js";

/** What declares a graph besides its state. */
export type StateGraphOptions<
  I = StateInput,
  O = StateInput,
  C = StateInput,
  N extends string = string,
  InterruptType = unknown,
  WriterType = unknown,
> = {
  input?: I;
  output?: O;
  context?: C;
  /** The questions that nodes ask: `typeof interrupt<…>`, or an object of such. */
  interrupt?: InterruptType;
  writer?: WriterType;
  /** Names of nodes that are added later. */
  nodes?: readonly N[];
};
export type StateGraphInit<
  SD = StateInput,
  I = StateInput,
  O = StateInput,
  C = StateInput,
  N extends string = string,
  InterruptType = unknown,
  WriterType = unknown,
> = StateGraphOptions<I, O, C, N, InterruptType, WriterType> & { state?: SD; stateSchema?: SD };
export type StateGraphArgsWithStateSchema<SD = StateInput, I = StateInput, O = StateInput> = Pick<
  StateGraphInit<SD, I, O>,
  "input" | "output"
> & { stateSchema: SD };
export type StateGraphArgsWithInputOutputSchemas<SD = StateInput, O = SD> = { input: SD; output: O };
/** A state that is declared by channels. */
export interface StateGraphArgs<State> {
  channels: LegacyChannels<State>;
}

export interface StateGraphConstructor {
  new <D extends AnyLegacyChannels>(
    fields: { channels: D },
    context?: StateInput,
  ): StateGraphBuilder<
    LegacyState<D>,
    LegacyState<D>,
    Partial<LegacyState<D>>,
    typeof START,
    LegacyState<D>,
    LegacyState<D>
  >;
  new <SD extends object>(
    fields: StateGraphArgs<SD>,
    context?: StateInput,
  ): StateGraphBuilder<SD, SD, Partial<SD>, typeof START, SD, SD>;
  new <
    SD extends StateInput,
    S = ExtractStateType<SD>,
    U = ExtractUpdateType<SD, S>,
    N extends string = typeof START,
    I extends StateInput = SD,
    O extends StateInput = SD,
    C = any,
    Results = unknown,
    InterruptType = unknown,
    WriterType = unknown,
  >(
    fields: ({ stateSchema: SD } | { state: SD }) & StateGraphOptions<I, O, C, N, InterruptType, WriterType>,
    context?: C,
  ): StateGraphBuilder<SD, S, U, N, I, O, C, Results, InterruptType, WriterType>;
  new <
    SD extends StateInput,
    S = ExtractStateType<SD>,
    U = ExtractUpdateType<SD, S>,
    N extends string = typeof START,
    I extends StateInput = SD,
    O extends StateInput = SD,
    C = any,
    Results = unknown,
    InterruptType = unknown,
    WriterType = unknown,
  >(
    fields: StateGraphOptions<SD, O, C, N, InterruptType, WriterType> &
      StateGraphArgsWithInputOutputSchemas<SD, O>,
    context?: C,
  ): StateGraphBuilder<SD, S, U, N, I, O, C, Results, InterruptType, WriterType>;
  new <
    SD extends StateInput,
    S = ExtractStateType<SD>,
    U = ExtractUpdateType<SD, S>,
    N extends string = typeof START,
    I extends StateInput = SD,
    O extends StateInput = SD,
    C = any,
    Results = unknown,
    InterruptType = unknown,
    WriterType = unknown,
  >(
    state: SD,
    options: StateGraphOptions<I, O, C, N, InterruptType, WriterType>,
  ): StateGraphBuilder<SD, S, U, N, I, O, C, Results, InterruptType, WriterType>;
  new <
    SD extends StateInput,
    S = ExtractStateType<SD>,
    U = ExtractUpdateType<SD, S>,
    N extends string = typeof START,
    I extends StateInput = SD,
    O extends StateInput = SD,
    C extends StateInput = any,
  >(
    state: SD,
    context?: C,
  ): StateGraphBuilder<SD, S, U, N, I, O, C>;
  /** With types that the program spells out. */
  new <
    SD,
    S = ExtractStateType<SD>,
    U = ExtractUpdateType<SD, S>,
    N extends string = typeof START,
    I = SD,
    O = SD,
    C = any,
    Results = unknown,
    InterruptType = unknown,
    WriterType = unknown,
  >(
    state: any,
    options?: any,
  ): StateGraphBuilder<SD, S, U, N, I, O, C, Results, InterruptType, WriterType>;
}

/** A graph under construction: `new StateGraph(Annotation.Root({ … }))`. */
export const StateGraph: StateGraphConstructor = StateGraphBuilder as unknown as StateGraphConstructor;
export type StateGraph<
  SD = unknown,
  S = ExtractStateType<SD>,
  U = ExtractUpdateType<SD, S>,
  N extends string = typeof START,
  I = SD,
  O = SD,
  C = any,
  Results = unknown,
  InterruptType = unknown,
  WriterType = unknown,
> = StateGraphBuilder<SD, S, U, N, I, O, C, Results, InterruptType, WriterType>;

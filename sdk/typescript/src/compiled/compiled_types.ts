/** Other names of compiled graphs and of what they take, under which LangGraph.js programs spell out types. */
import type { StreamOptions } from "./call_config.js";
import type { CompiledStateGraph } from "./compiled_graph.js";

export type CompiledGraph<
  N extends string = any,
  S = any,
  U = any,
  C = any,
  I = any,
  O = any,
  Results = unknown,
> = CompiledStateGraph<S, U, N, I, O, C, Results>;

type Part<Spec, Name extends string> = Spec extends { [K in Name]: infer T } ? T : any;
/** A compiled graph whose types have names: `CompiledGraphType<{ state: MyState; node: "a" }>`. */
export type CompiledGraphType<Spec extends object = object> = CompiledStateGraph<
  Part<Spec, "state">,
  Part<Spec, "update">,
  Part<Spec, "node">,
  Part<Spec, "input">,
  Part<Spec, "output">,
  Part<Spec, "context">,
  Spec extends { nodeReturn: infer R } ? R : unknown
>;

/** A compiled graph of any state. */
export type Pregel<_Nodes = any, _Channels = any, C = any, I = any, O = any> = CompiledStateGraph<
  any,
  any,
  any,
  I,
  O,
  C
>;
export type PregelOptions<
  _Nodes = any,
  _Channels = any,
  C = any,
  M = any,
  Sub = any,
  E = any,
> = StreamOptions<M, Sub, E, C>;
export type GetStateOptions = { subgraphs?: boolean };
export type PregelInputType = any;
export type PregelOutputType = any;

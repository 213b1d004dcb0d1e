/** What TypeScript knows of a state from what declares it. */
import type { BaseChannel } from "../channels/index.js";
import type { OverwriteValue } from "../values/index.js";

/** The keys of a state; `Annotation` without a call stands for the last value. */
export type StateDefinition = Record<string, BaseChannel<any, any> | (() => BaseChannel<any, any>)>;

type ChannelOf<C> = C extends BaseChannel<any, any> ? C : C extends () => infer R ? R : never;
type ValueOf<C> = ChannelOf<C> extends BaseChannel<infer V, any> ? V : never;
type WrittenTo<C> =
  ChannelOf<C> extends BaseChannel<infer V, infer U> ? U | OverwriteValue<V> | undefined : never;

/** What nodes read. */
export type StateType<SD extends StateDefinition> = { [K in keyof SD]: ValueOf<SD[K]> };
/** What nodes write. */
export type UpdateType<SD extends StateDefinition> = { [K in keyof SD]?: WrittenTo<SD[K]> };

/** A zod object, version 4 or 3; known by its shape, so that zod stays optional. */
export type ZodObject4<O = any, I = any> = { _zod: { output: O; input: I }; shape: any };
export type ZodObject3<O = any, I = any> = { _output: O; _input: I; _def: any; shape: any };
export type ZodObject = ZodObject4 | ZodObject3;

/** What declares a state. */
export type StateInput = DeclaredTypes | ZodObject | StateDefinition;

/** An `AnnotationRoot` or a `StateSchema`. */
type DeclaredTypes = {
  readonly lc_graph_name: "AnnotationRoot" | "StateSchema";
  readonly State: any;
  readonly Update: any;
};

/** What nodes read of a state that is declared by `T`. */
export type StateOf<T> = T extends { readonly State: infer S }
  ? S
  : T extends { _zod: { output: infer O } }
    ? O
    : T extends { _output: infer O; _def: any }
      ? O
      : T extends StateDefinition
        ? StateType<T>
        : T;

/** A schema of a key to which something else is written than nodes read. It is so in types only. */
export type WrittenAs<S, Update> = S & { readonly "~written": Update };

type WrittenOf<I, Shape, K extends keyof I> = K extends keyof Shape
  ? Shape[K] extends { readonly "~written": infer U }
    ? U
    : I[K]
  : I[K];
type ShapeOf<T> = T extends { readonly shape: infer Shape } ? Shape : unknown;

/** Any key may be overwritten rather than combined. */
type Writable<I, Shape = unknown> = {
  [K in keyof I]?: WrittenOf<I, Shape, K> | OverwriteValue<NonNullable<I[K]>>;
};

/** What nodes write of it. */
export type UpdateOf<T> = T extends { readonly Update: infer U }
  ? U
  : T extends { _zod: { input: infer I } }
    ? Writable<I, ShapeOf<T>>
    : T extends { _input: infer I; _def: any }
      ? Writable<I, ShapeOf<T>>
      : T extends StateDefinition
        ? UpdateType<T>
        : Writable<T>;

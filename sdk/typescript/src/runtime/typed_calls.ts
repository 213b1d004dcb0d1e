/** What TypeScript knows of the questions and the events of a graph, from its options `interrupt` and `writer`. */

type Ask<I = any, R = any> = (value: I, options?: any) => R;
type Asks = Readonly<Record<string, Ask>>;
type Defined<T> = unknown extends T ? never : T;

/** What is asked: of one `typeof interrupt<…>`, or of an object of them. */
export type InferInterruptInputType<T> = unknown extends T
  ? unknown
  : T extends Ask<infer I>
    ? I
    : T extends Asks
      ? { [K in keyof T]: InferInterruptInputType<T[K]> }[keyof T]
      : unknown;

/** What is answered. */
export type InferInterruptResumeType<T> = unknown extends T
  ? unknown
  : T extends Ask<never, infer R>
    ? R
    : T extends Asks
      ? { [K in keyof T]: Defined<InferInterruptResumeType<T[K]>> }[keyof T]
      : unknown;

/** What is sent in the mode `custom`: of a `typeof writer<…>`. */
export type InferWriterType<T> = unknown extends T ? any : T extends (chunk: infer W) => unknown ? W : any;

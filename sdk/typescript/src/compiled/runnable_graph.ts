/** What compiled graphs have as runnables of LangChain, and what they tell of themselves. */
import { NAMESPACE_SEPARATOR } from "../constants.js";
import type { CompiledGraph } from "../declare/index.js";
import { GraphValueError } from "../errors/index.js";
import { AttachedGraph } from "./attached_graph.js";
import type { IterableReadableStream } from "./iterable_stream.js";
import { PipedGraph, type PipeStep } from "./piped_graph.js";

export type BatchOptions = {
  /** How many calls run at once; left out, all of them. */
  maxConcurrency?: number;
  /** Errors stand among the results. Left out, the first one is thrown. */
  returnExceptions?: boolean;
};

export abstract class RunnableGraph<Input, Output, Options> extends AttachedGraph {
  readonly lc_namespace: string[] = ["langgraph", "pregel"];
  readonly lc_serializable = false;

  get lc_id(): string[] {
    return [...this.lc_namespace, "CompiledStateGraph"];
  }

  abstract invoke(input: Input, options?: Options): Promise<Output>;
  abstract stream(input: Input, options?: any): Promise<IterableReadableStream<any>>;

  /** Streams what becomes of an input that arrives in parts. */
  async *transform(parts: AsyncGenerator<Input>, options?: Options): AsyncGenerator<any> {
    let input: unknown;
    for await (const part of parts) input = input === undefined ? part : await joinParts(input, part);
    yield* await this.stream(input as Input, options);
  }

  /** Calls the graph for each input, with one object of options for all calls or one for each. */
  batch(
    inputs: readonly Input[],
    options: Options | readonly Options[] | undefined,
    batchOptions: BatchOptions & { returnExceptions: true },
  ): Promise<(Output | Error)[]>;
  batch(
    inputs: readonly Input[],
    options?: Options | readonly Options[],
    batchOptions?: BatchOptions,
  ): Promise<Output[]>;
  async batch(
    inputs: readonly Input[],
    options?: Options | readonly Options[],
    { maxConcurrency = inputs.length, returnExceptions = false }: BatchOptions = {},
  ): Promise<(Output | Error)[]> {
    const each: readonly (Options | undefined)[] = Array.isArray(options)
      ? options
      : inputs.map(() => options as Options | undefined);
    if (each.length !== inputs.length) {
      throw new GraphValueError(`batch has ${inputs.length} inputs and ${each.length} objects of options`);
    }
    const results: (Output | Error)[] = [];
    const left = inputs.entries();
    const work = async () => {
      for (const [at, input] of left) {
        const call = this.invoke(input, each[at]);
        results[at] = returnExceptions ? await call.catch((error: Error) => error) : await call;
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, maxConcurrency) }, work));
    return results;
  }

  /** Does something with the output of each call. */
  pipe<Next>(next: PipeStep<Output, Next>): PipedGraph<Input, Next, Options> {
    return new PipedGraph([this, next]);
  }

  /** The graphs that are nodes, or that nodes name in `subgraphs`; `recurse` shows those inside of them, too. */
  *getSubgraphs(namespace?: string, recurse = false): Generator<[string, RunnableGraph<any, any, any>]> {
    for (const { name, subgraph, called } of this.program.nodes.values()) {
      const graphs = subgraph === undefined ? called : [subgraph];
      for (const graph of graphs) yield* this.showSubgraph(name, graph, namespace, recurse);
    }
  }

  private *showSubgraph(
    name: string,
    graph: CompiledGraph,
    namespace: string | undefined,
    recurse: boolean,
  ): Generator<[string, RunnableGraph<any, any, any>]> {
    const inside = `${name}${NAMESPACE_SEPARATOR}`;
    const rest = namespace?.startsWith(inside) ? namespace.slice(inside.length) : undefined;
    if (namespace === undefined || namespace === name) yield [name, graph as RunnableGraph<any, any, any>];
    if (!recurse || (namespace !== undefined && rest === undefined)) return;
    for (const [inner, found] of (graph as RunnableGraph<any, any, any>).getSubgraphs(rest, recurse)) {
      yield [inside + inner, found];
    }
  }

  async *getSubgraphsAsync(
    namespace?: string,
    recurse = false,
  ): AsyncGenerator<[string, RunnableGraph<any, any, any>]> {
    yield* this.getSubgraphs(namespace, recurse);
  }

  /** A graph is checked when it is compiled. */
  validate(): this {
    return this;
  }

  /** Forgets the results that the cache of the graph keeps of its nodes. */
  async clearCache(): Promise<void> {
    const cache = this.compileOptions.cache as { clear?: (prefix: string) => unknown } | undefined;
    await cache?.clear?.(`${this.program.name}/`);
  }
}

/** As LangChain joins the parts of a stream. */
async function joinParts(first: unknown, second: unknown): Promise<unknown> {
  const { concat } = await import("@langchain/core/utils/stream");
  return concat(first as never, second as never);
}

/** A graph, and what is done with its output. */

/** A function, or a runnable of LangChain. */
export type PipeStep<Input = any, Output = any> =
  | ((input: Input, config?: any) => Output | Promise<Output>)
  | { invoke(input: Input, config?: any): Output | Promise<Output> };

export class PipedGraph<Input = any, Output = any, Options = any> {
  readonly lc_runnable = true;
  readonly lc_namespace: string[] = ["langgraph", "pregel"];

  constructor(private readonly steps: readonly PipeStep[]) {
    for (const step of steps) checkStep(step);
  }

  getName(): string {
    return "PipedGraph";
  }

  async invoke(input: Input, options?: Options): Promise<Output> {
    let value: unknown = input;
    for (const step of this.steps) {
      value = await (typeof step === "function" ? step(value, options) : step.invoke(value, options));
    }
    return value as Output;
  }

  pipe<Next>(next: PipeStep<Output, Next>): PipedGraph<Input, Next, Options> {
    return new PipedGraph([...this.steps, next]);
  }
}

function checkStep(step: unknown): void {
  if (typeof step === "function" || typeof (step as Partial<PipedGraph> | null)?.invoke === "function")
    return;
  throw new TypeError(`pipe takes a function or a runnable, not ${step === null ? "null" : typeof step}`);
}

/** What a node or a conditional edge runs: a function, or a runnable of LangChain. */

/** An error handler gets the failure in place of the config, and the config after it. */
export type Call = (input: any, config: any, handlerConfig?: any) => unknown;

/** An object with `invoke`, as LangChain's runnables have. */
export type RunnableLike<Input = any, Output = any> = {
  invoke(input: Input, config?: any): Output | Promise<Output>;
};

export type Action = {
  /** The name of the function; empty when it has none. */
  readonly name: string;
  readonly call: Call;
  /** A runnable hands the config on by itself. */
  readonly isRunnable: boolean;
};

/** Reads what a program gives as the code of a node. */
export function readAction(given: unknown, what: string): Action {
  if (typeof given === "function") return { name: given.name, call: given as Call, isRunnable: false };
  if (isRunnable(given)) {
    const name = (given as { getName?: () => string; name?: string }).getName?.() ?? "";
    return { name, call: (input, config) => given.invoke(input, config), isRunnable: true };
  }
  throw new TypeError(
    `${what} must be a function, a runnable or a compiled graph, not ${describeKind(given)}`,
  );
}

function isRunnable(value: unknown): value is RunnableLike {
  return typeof (value as { invoke?: unknown } | null | undefined)?.invoke === "function";
}

function describeKind(value: unknown): string {
  return value === null ? "null" : typeof value;
}

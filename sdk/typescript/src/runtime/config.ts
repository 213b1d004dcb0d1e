/** What the code of a node can ask for without its second argument. */
import type { BaseStore, LangGraphRunnableConfig } from "../values/index.js";
import { currentTask, requiredTask } from "./task.js";

/** The config of the node that calls this. */
export function getConfig<C = any>(): LangGraphRunnableConfig<C> {
  return requiredTask("getConfig()").config as LangGraphRunnableConfig<C>;
}

/** Sends events in the mode `custom`; `undefined` outside of nodes. */
export function getWriter(config?: LangGraphRunnableConfig): ((chunk: unknown) => void) | undefined {
  return config?.writer ?? currentTask()?.config.writer;
}

/** Sends one event in the mode `custom`. */
export function writer<T = unknown>(chunk: T): void {
  requiredTask("writer()").config.writer?.(chunk);
}

export function getStore(config?: LangGraphRunnableConfig): BaseStore | undefined {
  return config?.store ?? currentTask()?.config.store;
}

/** What the node was called with. */
export function getCurrentTaskInput<T = unknown>(): T {
  return requiredTask("getCurrentTaskInput()").input as T;
}

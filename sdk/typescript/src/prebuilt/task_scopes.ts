import { GraphInterrupt } from "../errors/index.js";

export { currentScope, currentTask, scope } from "../runtime/index.js";

/** One error for the questions of several. */
export function interruptOfAll(asking: readonly GraphInterrupt[]): GraphInterrupt {
  return new GraphInterrupt(asking.flatMap(({ interrupts }) => interrupts));
}

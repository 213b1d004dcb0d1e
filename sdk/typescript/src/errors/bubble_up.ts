/** What leaves a node without being a failure of it. */
import { type BaseErrorFields, BaseLangGraphError, hasErrorName } from "./base.js";

export class GraphBubbleUp extends BaseLangGraphError {
  get is_bubble_up(): boolean {
    return true;
  }

  static override get unminifiable_name(): string {
    return "GraphBubbleUp";
  }
}

/** One question, as errors and results show it. */
export type AskedQuestion = { id?: string; value?: unknown; response_schema?: unknown };

/** A node asks people. It must leave the node, so don't catch it. */
export class GraphInterrupt extends GraphBubbleUp {
  interrupts: AskedQuestion[];

  constructor(interrupts: AskedQuestion[] = [], fields: BaseErrorFields = {}) {
    super(JSON.stringify(interrupts.map(({ id }) => id ?? null)), fields);
    this.interrupts = interrupts;
  }

  static override get unminifiable_name(): string {
    return "GraphInterrupt";
  }
}

/** A question thrown as an error; `interrupt()` is the newer way. */
export class NodeInterrupt extends GraphInterrupt {
  constructor(value: unknown, fields: BaseErrorFields = {}) {
    super([{ value }], fields);
  }

  static override get unminifiable_name(): string {
    return "NodeInterrupt";
  }
}

/** A command for the enclosing graph. */
export class ParentCommand<C = unknown> extends GraphBubbleUp {
  constructor(readonly command: C) {
    super("a command for the enclosing graph");
  }

  static override get unminifiable_name(): string {
    return "ParentCommand";
  }
}

export function isGraphBubbleUp(value: unknown): value is GraphBubbleUp {
  return (value as Partial<GraphBubbleUp> | null | undefined)?.is_bubble_up === true;
}

export function isGraphInterrupt(value: unknown): value is GraphInterrupt {
  return hasErrorName(value, "GraphInterrupt", "NodeInterrupt");
}

export function isNodeInterrupt(value: unknown): value is NodeInterrupt {
  return hasErrorName(value, "NodeInterrupt");
}

export function isParentCommand(value: unknown): value is ParentCommand {
  return hasErrorName(value, "ParentCommand");
}

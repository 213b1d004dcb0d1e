import type { Interrupt as WireInterrupt } from "../_gen/graphd/v1/interrupt_pb.js";
import { fromPayload } from "../codec/index.js";

/** One open question as streams, results and states show it. */
export type ShownInterrupt = {
  id: string;
  value?: unknown;
  response_schema?: unknown;
  replaces?: string;
  differs?: string[];
};

/** Tells questions from breakpoints. */
export function isQuestion(interrupt: WireInterrupt): boolean {
  return interrupt.reason !== "breakpoint" || interrupt.taskId !== "";
}

export function showInterrupt(interrupt: WireInterrupt): ShownInterrupt {
  const shown: ShownInterrupt = { id: interrupt.interruptId, value: fromPayload(interrupt.value) };
  const schema = fromPayload(interrupt.responseSchema);
  if (schema !== undefined && schema !== null) shown.response_schema = schema;
  if (interrupt.replaces) {
    shown.replaces = interrupt.replaces;
    shown.differs = interrupt.differs;
  }
  return shown;
}

/** The questions among interrupts. */
export function showQuestions(interrupts: Iterable<WireInterrupt>): ShownInterrupt[] {
  return [...interrupts].filter(isQuestion).map(showInterrupt);
}

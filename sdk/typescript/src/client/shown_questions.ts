import type { Interrupt } from "../_gen/graphd/v1/interrupt_pb.js";
import { type Levels, publicLevels } from "../names/index.js";
import { isQuestion, type ShownInterrupt, showInterrupt } from "./shown_interrupt.js";

/** Questions that one task waits for, and the graph of the task. */
export type QuestionGroup = { levels: Levels; asked: ShownInterrupt[] };

type Placed = { levels: Levels; interrupt: Interrupt };

/** The questions that a stream has shown, and where: in the graph that asked, and in those around it. */
export class ShownQuestions {
  private readonly raised = new Set<string>();
  private readonly asked = new Set<string>();
  /** Of graphs inside of others, which have not shown them. */
  private below: Placed[] = [];

  constructor(private readonly subgraphs: boolean) {}

  /** Takes new interrupts of a graph; the questions among them show there, if the graph shows at all. */
  recordRaised(levels: Levels, interrupts: readonly Interrupt[]): QuestionGroup[] {
    for (const { interruptId } of interrupts) this.raised.add(interruptId);
    const placed = interrupts.filter(isQuestion).map((interrupt) => ({ levels, interrupt }));
    for (const { interrupt } of placed) this.asked.add(interrupt.interruptId);
    if (levels.length > 0) this.below.push(...placed);
    return this.subgraphs || levels.length === 0 ? groupByTask(placed, levels.length) : [];
  }

  /** All these interrupts were raised in this call. */
  hasRaised(ids: readonly string[]): boolean {
    return ids.every((id) => this.raised.has(id));
  }

  /** One of these interrupts is a question that was shown. */
  hasAsked(ids: readonly string[]): boolean {
    return ids.some((id) => this.asked.has(id));
  }

  /**
   * What shows at the end: questions that wait since an earlier call, and new ones in the graphs around. A
   * task waits for all questions of the graphs that run in it, so these are complete only now.
   */
  groupsAtEnd(waiting: readonly Interrupt[]): QuestionGroup[] {
    const known = waiting
      .filter((one) => !this.raised.has(one.interruptId) && isQuestion(one))
      .map((interrupt) => ({ levels: publicLevels(interrupt.checkpoint?.namespace ?? []), interrupt }));
    for (const { interrupt } of known) this.asked.add(interrupt.interruptId);
    const below = this.below.splice(0);
    const deepest = this.subgraphs ? Math.max(0, ...[...known, ...below].map((one) => one.levels.length)) : 0;
    const groups: QuestionGroup[] = [];
    for (let depth = deepest; depth >= 0; depth--) {
      const shown = known.filter((one) => one.levels.length >= depth);
      groups.push(...groupByTask([...shown, ...below.filter((one) => one.levels.length > depth)], depth));
    }
    return groups;
  }
}

/** Questions by the tasks at a depth that wait for them. */
function groupByTask(placed: readonly Placed[], depth: number): QuestionGroup[] {
  const groups = new Map<string, QuestionGroup>();
  for (const { levels, interrupt } of placed) {
    const around = levels.slice(0, depth);
    const key = JSON.stringify([around, levels[depth] ?? interrupt.taskId]);
    const group = groups.get(key) ?? { levels: around, asked: [] };
    group.asked.push(showInterrupt(interrupt));
    groups.set(key, group);
  }
  return [...groups.values()];
}

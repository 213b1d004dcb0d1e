// The outcome of what is done with several questions.

import type { ComponentChildren } from "preact";
import type { Interrupt } from "../api/messages";
import { addressOf } from "../route";
import { Text } from "../text/marks";

/** A question with which something failed. */
export interface Failure {
  question: Interrupt;
  error: unknown;
  /** Why, in words. */
  message: string;
}

const callsAtOnce = 4; // a browser opens six connections
const mostShown = 20;

/** Makes a call for each question, and returns the failures. */
export async function inParallel(questions: readonly Interrupt[], progress: (n: number) => void, call: (q: Interrupt) => Promise<void>): Promise<Failure[]> {
  const failures: Failure[] = [];
  let next = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    while (next < questions.length) {
      const question = questions[next++]!;
      await call(question).catch((error: unknown) => failures.push({ question, error, message: error instanceof Error ? error.message : String(error) }));
      progress(++done);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, work));
  return failures;
}

/** Shows what failed and why, reasons that many have first. */
export function Failures({ of: failures, what }: { of: readonly Failure[]; what: string }): ComponentChildren {
  if (failures.length === 0) return null;
  const byReason = Map.groupBy(failures, (f) => f.message.replaceAll(/"[0-9a-f-]{8,}"/g, "").replaceAll("  ", " "));
  const shown = [...byReason].sort(([, a], [, b]) => b.length - a.length).slice(0, mostShown);
  return (
    <div role="alert">
      <p class="problem">{failures.length} {failures.length === 1 ? "is" : "are"} {what}:</p>
      <ul>
        {shown.map(([reason, all]) => (
          <li>
            <Text of={reason} />{" "}
            {all.slice(0, mostShown).map(({ question: q }) => <><a class="mono" href={addressOf("inbox", [q.threadId!, q.interruptId!])}><Text of={q.threadId ?? ""} /></a>{" "}</>)}
            {all.length > mostShown && `and ${all.length - mostShown} more`}
          </li>
        ))}
      </ul>
    </div>
  );
}

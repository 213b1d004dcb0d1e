// Takes an answer back before it takes effect.

import type { Interrupt } from "../api/messages";
import { noteError } from "../api/session";
import { showProblem, showToast } from "../ui/toast";
import { retract } from "./actions";

const takenBack = new Set<string>();

/** Notes that a question is answered anew. */
export function noteAnswer(q: Interrupt): void {
  takenBack.delete(q.interruptId!);
}

/** Tells whether the last answer to a question is taken back, perhaps before its call has returned: the question may be shown as answered sooner. */
export function isTakenBack(q: Interrupt): boolean {
  return takenBack.has(q.interruptId!);
}

export function takeBack(q: Interrupt, changed: (q: Interrupt) => void): void {
  takenBack.add(q.interruptId!);
  retract(q).then(
    (then) => {
      changed(then);
      showToast({ title: `Taken back: ${q.threadId}`, about: "The question is open again" });
    },
    (err: unknown) => {
      noteError(err);
      showProblem("It could not be taken back", err);
    },
  );
}

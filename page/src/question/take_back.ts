// Takes an answer back before it takes effect.

import type { Interrupt } from "../api/messages";
import { noteError } from "../api/session";
import { showProblem, showToast } from "../ui/toast";
import { retract } from "./actions";

export function takeBack(q: Interrupt, changed: (q: Interrupt) => void): void {
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

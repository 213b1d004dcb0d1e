// Hides questions in this browser until a time.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Interrupt } from "../api/messages";
import { formatMoment } from "../text/time";
import { Dialog } from "../ui/dialog";
import { showToast } from "../ui/toast";
import { hideUntil, isHidden, longest } from "./later";

interface Props {
  questions: readonly Interrupt[];
  close: () => void;
  /** Is called when the questions are hidden. */
  done: () => void;
}

export function LaterDialog({ questions, close, done }: Props): ComponentChildren {
  const now = Date.now();
  const [own, setOwn] = useState(toLocal(now + 4 * 3600e3));
  const ids = questions.map((q) => q.interruptId!);
  const show = (): void => {
    hideUntil(ids, 0);
    close();
  };
  const hide = (until: number): void => {
    hideUntil(ids, until);
    showToast({ title: `Later: ${formatMoment(until, Date.now())}`, about: "Hidden in this browser", until: Date.now() + 8000, undo: () => hideUntil(ids, 0) });
    done();
    close();
  };
  const chosen = Date.parse(own);
  const isTooLate = chosen > now + longest;
  return (
    <Dialog title={questions.length === 1 ? "Later" : `${questions.length} questions later`} close={close}>
      <p>Hidden in this browser until then, for at most 7 days. The steps of a question and its expiry go on, and others see it.</p>
      <div style={{ display: "flex", gap: "8px", margin: "12px 0" }}>
        <button type="button" class="ghost" onClick={() => hide(now + 3600e3)}>In 1 hour</button>
        <button type="button" class="ghost" onClick={() => hide(tomorrow(now))}>Tomorrow, 9:00</button>
        {questions.some((q) => isHidden(q, now)) && <button type="button" class="ghost" onClick={show}>Show now</button>}
      </div>
      <form class="answer" onSubmit={(e) => { e.preventDefault(); if (chosen > now && !isTooLate) hide(chosen); }}>
        <div class="field">
          <label class="label" for="later-at">Until</label>
          <input id="later-at" type="datetime-local" value={own} min={toLocal(now)} max={toLocal(now + longest)} onInput={(e) => setOwn(e.currentTarget.value)} />
          {isTooLate && <span class="problem">Want a time in the next 7 days</span>}
        </div>
        <button type="submit" class="main" disabled={!(chosen > now) || isTooLate}>Hide until then</button>
      </form>
    </Dialog>
  );
}

function tomorrow(now: number): number {
  const at = new Date(now);
  at.setDate(at.getDate() + 1);
  return at.setHours(9, 0, 0, 0);
}

/** Returns a time as a field for local times has it. */
function toLocal(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
}

// Short messages about what was done, with a way back.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Store, useStore } from "../api/store";
import { useKeys } from "../keys";
import { Text } from "../text/marks";
import { Icon } from "./icons";
import { Key } from "./key";
import { Ring } from "./ring";

export interface Toast {
  title: string;
  about: string;
  isProblem?: boolean;
  /** Until when it is shown, and until when it can be undone. */
  until: number;
  undo?: () => void;
}

const toast = new Store<Toast | undefined>(undefined);

const shownFor = 5000;

/** Shows a message, in the place of the one before. */
export function showToast(t: Omit<Toast, "until"> & { until?: number }): void {
  toast.set({ until: Date.now() + shownFor, ...t });
}

export function showProblem(title: string, err: unknown): void {
  showToast({ title, about: err instanceof Error ? err.message : String(err), isProblem: true, until: Date.now() + 2 * shownFor });
}

export function ToastView(): ComponentChildren {
  const t = useStore(toast);
  const [begun, setBegun] = useState(0);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!t) return;
    setBegun(Date.now());
    setNow(Date.now());
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() >= t.until) toast.set(undefined);
    }, 250);
    return () => clearInterval(timer);
  }, [t]);
  const undo = t?.undo && (() => {
    toast.set(undefined);
    t.undo!();
  });
  useKeys(undo ? [{ keys: ["u"], about: "undo", run: undo }] : []);
  const left = t ? Math.max(0, t.until - now) : 0;
  return (
    <div class="toasts" role="status" aria-live="polite">
      {t && (
        <div class={"toast" + (t.isProblem ? " problem" : "")}>
          {undo ? <Ring part={left / Math.max(1, t.until - begun)} size={22} /> : <Icon name={t.isProblem ? "warn" : "check"} size={18} />}
          <span>
            <b dir="auto"><Text of={t.title} /></b>
            <small>{undo && !t.about ? `takes effect in ${Math.ceil(left / 1000)} s` : <Text of={t.about} />}</small>
          </span>
          {undo && <button type="button" class="ghost" onClick={undo}>Undo<Key of="U" /></button>}
          <button type="button" class="icon" aria-label="Close" onClick={() => toast.set(undefined)}><Icon name="cross" size={14} /></button>
        </div>
      )}
    </div>
  );
}

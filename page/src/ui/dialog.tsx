// A dialog over the page; Escape closes it.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }): ComponentChildren {
  const dialog = useModal(close);
  return (
    <dialog ref={dialog} class="sheet" aria-labelledby="dialog-title" onClick={(e) => e.target === dialog.current && dialog.current!.close()}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

/**
 * Shows a dialog over the page, and calls close when the user closes it. A browser tells of that a frame later:
 * by then another dialog may be shown in the place of this one.
 */
export function useModal(close: () => void): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const shown = dialog.current!;
    shown.addEventListener("close", () => shown.isConnected && latest.current());
    shown.showModal();
  }, []);
  return dialog;
}

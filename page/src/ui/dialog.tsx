// A dialog over the page; Escape closes it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} class="sheet" aria-labelledby="dialog-title" onClose={close} onClick={(e) => e.target === dialog.current && dialog.current!.close()}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

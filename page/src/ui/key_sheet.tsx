// All keys that do something now.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { listKeys } from "../keys";
import { plainText } from "../text/marks";
import { Key } from "./key";

const shown: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

export function KeySheet({ close }: { close: () => void }): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} class="sheet" aria-labelledby="keys-title" onClose={close} onClick={(e) => e.target === dialog.current && dialog.current!.close()}>
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {listKeys().map((a) => (
          <div>
            <dt>{a.keys.flatMap((k) => k.split(" ")).map((k) => <Key of={shown[k] ?? (k.length === 1 ? k.toUpperCase() : k)} />)}</dt>
            <dd>{plainText(a.about)}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <div class="choices"><button class="ghost">Close</button><a class="ghost" href="/assets/licenses.txt" target="_blank">Licenses of the code of others</a></div>
      </form>
    </dialog>
  );
}

// All keys that do something now.

import type { ComponentChildren } from "preact";
import { listKeys } from "../keys";
import { plainText } from "../text/marks";
import { Dialog } from "./dialog";
import { Key } from "./key";

const shown: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

export function KeySheet({ close }: { close: () => void }): ComponentChildren {
  return (
    <Dialog title="Keys" close={close}>
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
    </Dialog>
  );
}

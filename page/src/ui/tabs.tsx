// Tabs, one of which is shown.

import type { ComponentChildren } from "preact";

export interface Tab {
  id: string;
  title: string;
  count?: number | undefined;
}

/** Shows tabs and the panel of the chosen one; arrows move between them. */
export function Tabs({ label, tabs, chosen, choose, aside, children }: { label: string; tabs: readonly Tab[]; chosen: string; choose: (id: string) => void; aside?: ComponentChildren; children: ComponentChildren }): ComponentChildren {
  const move = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    e.preventDefault();
    const at = tabs.findIndex((t) => t.id === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length]!;
    choose(next.id);
    document.getElementById("tab-" + next.id)?.focus();
  };
  return (
    <>
      <div class="tabs">
        <div role="tablist" aria-label={label} onKeyDown={move}>
          {tabs.map((t) => (
            <button type="button" role="tab" id={"tab-" + t.id} aria-controls={"panel-" + t.id} aria-selected={t.id === chosen} tabIndex={t.id === chosen ? 0 : -1} onClick={() => choose(t.id)}>
              {t.title}{t.count !== undefined && <> <b>{t.count}</b></>}
            </button>
          ))}
        </div>
        {aside}
      </div>
      <div class="panel" role="tabpanel" id={"panel-" + chosen} aria-labelledby={"tab-" + chosen}>{children}</div>
    </>
  );
}

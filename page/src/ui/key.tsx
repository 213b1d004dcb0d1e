// A key beside the word of what it does.

import type { ComponentChildren } from "preact";

/** Shows a key; readers of the screen are told of it by aria-keyshortcuts. */
export function Key({ of: key }: { of: string }): ComponentChildren {
  return <kbd aria-hidden="true">{key === "Mod+Enter" ? modName + "⏎" : key === "Mod+K" ? modName + "K" : key}</kbd>;
}

const modName = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl ";

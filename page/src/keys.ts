// The keys of the page. A screen adds its keys while it is shown; what is typed into a field is no key.

import { useLayoutEffect } from "preact/hooks";

export interface KeyAction {
  /** Like "j", "?", "ArrowLeft", "Mod+Enter"; several do the same. */
  keys: readonly string[];
  /** What it does, for the list of keys. */
  about: string;
  run: () => void;
}

const layers: (readonly KeyAction[])[] = [];

/** Returns the actions that have a key now, the newest first. */
export function listKeys(): readonly KeyAction[] {
  return layers.toReversed().flat();
}

/** Gives keys to actions while a component is shown. The newest layer wins. Before the next key is pressed they do what is shown. */
export function useKeys(actions: readonly KeyAction[]): void {
  useLayoutEffect(() => {
    layers.push(actions);
    return () => {
      layers.splice(layers.indexOf(actions), 1);
    };
  });
}

/** Runs the action of a key. Keys of two strokes, like "g i", are those with a space. */
export function startKeys(): void {
  let first = "";
  addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing) return;
    const name = (e.metaKey || e.ctrlKey ? "Mod+" : "") + (e.key.length === 1 && (e.metaKey || e.ctrlKey) ? e.key.toUpperCase() : e.key);
    const isTyping = e.target instanceof Element && e.target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select") !== null;
    if (isTyping && e.key === "Escape") (e.target as HTMLElement).blur();
    if ((isTyping && !name.startsWith("Mod+")) || e.altKey) return;
    if (document.querySelector("dialog[open]") && e.key !== "Escape") return;
    const stroke = first !== "" ? `${first} ${name}` : name;
    const action = listKeys().find((a) => a.keys.includes(stroke));
    first = !action && first === "" && listKeys().some((a) => a.keys.some((k) => k.startsWith(name + " "))) ? name : "";
    if (!action) return;
    e.preventDefault();
    action.run();
  });
}

// Text of graphs and of people, shown so that a person reads what is there: characters that hide,
// reorder or look like nothing become marks with their number.

import type { ComponentChildren } from "preact";
import { hasHidden, hidden } from "./hidden";

export { hasHidden, plainText } from "./hidden";

/** Shows a text, with marks for what it hides. */
export function Text({ of: text }: { of: string }): ComponentChildren {
  if (!hasHidden(text)) return text;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const m of text.matchAll(hidden)) {
    parts.push(text.slice(from, m.index), <span class="mark">U+{m[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}</span>);
    from = m.index + m[0].length;
  }
  parts.push(text.slice(from));
  return <>{parts}</>;
}

// Text of graphs and of people, shown so that a person reads what is there: characters that hide,
// reorder or look like nothing become marks with their number.

import type { ComponentChildren } from "preact";

// What has no shape of its own; a selector that makes a sign a picture stays. The rule is that of the
// command line, which shows the same texts.
const hidden = /(?!(?<=[\p{So}\p{Sm}\p{Po}\p{Nd}])[\ufe0e\ufe0f])[\p{DI}\u2800]|[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\n\t]/gu;

/** Tells whether a text has characters that are shown as marks. */
export function hasHidden(text: string): boolean {
  return text.search(hidden) >= 0;
}

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

/** Returns a text for a label, where no element can stand. */
export function plainText(text: string): string {
  return text.replaceAll(hidden, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

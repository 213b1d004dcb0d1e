// Characters of texts that hide, reorder or look like nothing.

// What has no shape of its own; a selector that makes a sign a picture stays. The rule is that of the
// command line, which shows the same texts.
export const hidden = /(?!(?<=[\p{So}\p{Sm}\p{Po}\p{Nd}])[\ufe0e\ufe0f])[\p{DI}\u2800]|[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\n\t]/gu;

/** Tells whether a text has characters that are shown as marks. */
export function hasHidden(text: string): boolean {
  return text.search(hidden) >= 0;
}

/** Returns a text for a label, where no element can stand. */
export function plainText(text: string): string {
  return text.replaceAll(hidden, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

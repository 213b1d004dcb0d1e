// About how wide a text is, without a browser that could measure it: the same drawing everywhere.

/** Returns the width of a text in letters as wide as the size of the font. */
export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += letterWidth(letter);
  return width;
}

/** Cuts a text that is wider. */
export function cutToWidth(text: string, most: number): string {
  if (widthOf(text) <= most) return text;
  let kept = "";
  let width = letterWidth("…");
  for (const letter of text) {
    width += letterWidth(letter);
    if (width > most) break;
    kept += letter;
  }
  return kept.trimEnd() + "…";
}

function letterWidth(letter: string): number {
  if ("ijl|.,:;'!` ".includes(letter)) return 0.34;
  if ('ftrI()[]{}-/\\"'.includes(letter)) return 0.44;
  if ("mwMW@%…".includes(letter)) return 1;
  const c = letter.codePointAt(0)!;
  if (c >= 0x300 && c < 0x370) return 0; // stands on the letter before it
  if (isWide(c)) return 1.05;
  return letter >= "A" && letter <= "Z" ? 0.75 : 0.63;
}

// The scripts of East Asia and pictures.
const wide: readonly (readonly [number, number])[] = [[0x1100, 0x115f], [0x2e80, 0xa4cf], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe30, 0xfe4f], [0xff00, 0xff60], [0x1f300, 0x1faff], [0x20000, 0x3fffd]];

function isWide(c: number): boolean {
  return wide.some(([first, last]) => c >= first && c <= last);
}

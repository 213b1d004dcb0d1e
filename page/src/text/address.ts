// Texts in addresses.

/** Returns the text of a part of an address; one that is no text stays as it is. */
export function decodeText(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

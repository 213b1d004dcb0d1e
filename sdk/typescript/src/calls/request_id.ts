/** A new id of a request, a run or a message. Browsers make no UUIDs on pages in plain HTTP. */
export function createId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

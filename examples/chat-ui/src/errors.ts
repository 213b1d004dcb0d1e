/** What a person reads of an error. Those of graphd have a sentence in the detail of their body. */
export function readDetail(error: unknown): string | undefined {
  if (error === undefined || error === null) return undefined;
  const text = error instanceof Error ? error.message : String(error);
  const body = /\{.*\}/s.exec(text)?.[0];
  try {
    return body === undefined ? text : (JSON.parse(body).detail ?? text);
  } catch {
    return text;
  }
}

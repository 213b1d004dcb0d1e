// What a tab does while it is seen.

/** Runs something again and again until closing ends. Its signal ends when the tab is hidden. */
export async function runWhileSeen(closing: AbortSignal, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  let leaving = new AbortController();
  let goOn = (): void => undefined;
  const look = (): void => {
    if (document.hidden) return leaving.abort();
    leaving = new AbortController();
    goOn();
  };
  document.addEventListener("visibilitychange", look, { signal: closing });
  while (!closing.aborted) {
    if (document.hidden) await new Promise<void>((resolve) => (goOn = resolve));
    await run(AbortSignal.any([closing, leaving.signal]));
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}

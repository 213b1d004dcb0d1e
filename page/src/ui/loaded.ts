// Something that is read when it is shown, and read again when what it depends on changes.

import { useEffect, useState } from "preact/hooks";
import { noteError } from "../api/session";
import { connection } from "../api/connection";

export interface Loaded<T> {
  value: T | undefined;
  problem: string;
}

/** Reads a value; of several reads the last one counts. What is shown stays until the next one is there. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, depends: readonly unknown[]): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ value: undefined, problem: "" });
  useEffect(() => {
    const closing = new AbortController();
    load(closing.signal).then(
      (value) => {
        if (closing.signal.aborted) return;
        if (connection.get() === "connecting") connection.set("live");
        setLoaded({ value, problem: "" });
      },
      (err: unknown) => {
        if (closing.signal.aborted) return;
        noteError(err);
        setLoaded((shown) => ({ ...shown, problem: err instanceof Error ? err.message : String(err) }));
      },
    );
    return () => closing.abort();
  }, depends);
  return loaded;
}

// What is loaded when it is needed for the first time.

import { useEffect, useState } from "preact/hooks";

/** Returns a module once it is there. */
export function useLater<T>(isNeeded: boolean, load: () => Promise<T>): T | undefined {
  const [loaded, setLoaded] = useState<{ module: T } | undefined>(undefined);
  useEffect(() => {
    if (isNeeded && !loaded) void load().then((module) => setLoaded({ module }));
  }, [isNeeded]);
  return loaded?.module;
}

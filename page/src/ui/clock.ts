// The time that the page shows: it goes on while the page is seen.

import { useEffect, useState } from "preact/hooks";

/** Returns the time, anew every so many milliseconds. */
export function useNow(every = 10_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

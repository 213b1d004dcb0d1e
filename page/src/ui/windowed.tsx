// A long list of rows of one height. Only the rows that are seen are elements.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const beyond = 12; // rows that are made beside what is seen

export function WindowedRows({ label, height, count, row }: { label: string; height: number; count: number; row: (i: number) => ComponentChildren }): ComponentChildren {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const from = Math.max(0, Math.floor(view.top / height) - beyond);
  const to = Math.min(count, Math.ceil((view.top + view.height) / height) + beyond);
  return (
    <div class="windowed" ref={box} tabIndex={0} role="group" aria-label={label}>
      <ol style={{ height: count * height + "px", paddingTop: from * height + "px" }}>
        {Array.from({ length: Math.max(0, to - from) }, (_, i) => row(from + i))}
      </ol>
    </div>
  );
}

// How much of something is there: votes, or the time that is left.

import type { ComponentChildren } from "preact";

/** Shows a part of 1 as an arc. */
export function Ring({ part, size = 12 }: { part: number; size?: number }): ComponentChildren {
  const r = size / 2 - 1;
  const around = 2 * Math.PI * r;
  return (
    <svg class="ring" width={size} height={size} viewBox={`0 0 ${size} ${size}`} aria-hidden="true">
      <circle cx={size / 2} cy={size / 2} r={r} />
      {part > 0 && <circle class="part" cx={size / 2} cy={size / 2} r={r} stroke-dasharray={`${around * Math.min(part, 1)} ${around}`} />}
    </svg>
  );
}

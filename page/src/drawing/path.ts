// The lines of edges.

import type { Point } from "./layout";

/** Returns the path of an edge through its points. */
export function pathOf(points: readonly Point[]): string {
  const text = (p: Point): string => `${round(p.x)},${round(p.y)}`;
  const [first, ...rest] = points;
  if (!first) return "";
  let path = "M" + text(first);
  if (rest.length === 1) return `${path}L${text(rest[0]!)}`;
  for (let i = 0; i < rest.length - 1; i++) {
    const [control, next] = [rest[i]!, rest[i + 1]!];
    const to = i === rest.length - 2 ? next : { x: (control.x + next.x) / 2, y: (control.y + next.y) / 2 };
    path += `Q${text(control)} ${text(to)}`;
  }
  return path;
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}

// Icons, drawn in a square of 16.

import type { ComponentChildren } from "preact";
import { nodeIcons } from "../drawing/icons";

const paths = {
  ...nodeIcons,
  inbox: "M2.5 9.5h3l1 2h3l1-2h3M2.5 9.5 4 3.5h8l1.5 6v3h-11z",
  threads: "M3 4h10M3 8h7M3 12h9",
  graphs: "M2.5 2.5h4v4h-4zM9.5 9.5h4v4h-4zM4.5 6.5v5h5",
  workers: "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M3.6 12.4 5 11M11 5l1.4-1.4",
  overview: "M1.5 8.5h3l2-5 3 9 2-4h3",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3 14 14",
  person: "M8 8.2a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2M3 13.5c.4-2.6 2.4-3.8 5-3.8s4.6 1.2 5 3.8",
  group: "M6 8a2.3 2.3 0 1 0 0-4.6A2.3 2.3 0 0 0 6 8M1.5 13c.3-2.3 2-3.5 4.5-3.5s4.2 1.2 4.5 3.5M10.5 3.6a2.3 2.3 0 0 1 0 4.3M12.3 9.9c1.3.5 2 1.6 2.2 3.1",
  clock: "M8 2.2a5.8 5.8 0 1 1 0 11.6 5.8 5.8 0 0 1 0-11.600M8 5v3.200l2 1.3",
  link: "M6.5 9.5 9.5 6.500M7 4.500l1.5-1.500a3 3 0 0 1 4.3 4.300L11.3 8.800M9 11.5 7.5 13a3 3 0 0 1-4.3-4.300L4.7 7.2",
  fork: "M4 3v6a3 3 0 0 0 3 3h5M9.5 9.5 12 12l-2.5 2.5",
  again: "M13 8a5 5 0 1 1-1.6-3.700M13 2.500v2.800h-2.8",
  stop: "M4 4h8v8H4z",
  sort: "M8 13V3M4.5 6.5 8 3l3.5 3.5",
  cross: "m4 4 8 8M12 4l-8 8",
  check: "m3.5 8.5 3 3 6-7",
  warn: "M8 2.5 14.5 13.500h-13zM8 6.500v3.200M8 11.600v.1",
  play: "M5 3.500v9l7.5-4.500z",
  comment: "M2.5 3h11v8H7l-3 2.500V11H2.500z",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8M8 6.200a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6",
} as const;

export type IconName = keyof typeof paths;

/** Shows an icon; what it means stands beside it, or in the label of its button. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }): ComponentChildren {
  return (
    <svg class="i" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** Shows the sign of graphd. */
export function Logo(): ComponentChildren {
  return (
    <svg class="logo" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <rect width="22" height="22" rx="6" />
      <path d="M7 7v5a3 3 0 0 0 3 3h5M7 7h8" />
      <circle cx="7" cy="7" r="2" />
      <circle cx="15" cy="7" r="2" class="hot" />
      <circle cx="15" cy="15" r="2" />
    </svg>
  );
}

// Icons of nodes, in a square of 16. Their paths have the commands M, L, C and Z only, which the command line reads.

export const nodeIcons = {
  ask: "M5.3,5.8C5.6,4.4 6.7,3.4 8,3.4C9.7,3.4 10.9,4.5 10.9,5.9C10.9,8 8,8 8,10M8,12.6L8,12.7",
  code: "M5.5,4L2,8L5.5,12M10.5,4L14,8L10.5,12",
  remote: "M2.5,8L13,8M9,4L13,8L9,12",
  graph: "M3,3L7,3L7,7L3,7ZM9,9L13,9L13,13L9,13ZM7,5L11,5L11,9",
} as const;

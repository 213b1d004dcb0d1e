// Which icon a node has.

import { nodeIcons } from "./icons";
import type { NodeKind } from "./spec";

/** Returns the path of the icon of a node. */
export function iconOf(kind: NodeKind): string {
  switch (kind) {
    case "ask":
    case "remote":
    case "graph":
      return nodeIcons[kind];
    case "expr":
    case "function":
      return nodeIcons.code;
    case "start":
    case "end":
      return "";
  }
}

import { NAMESPACE_SEPARATOR, TASK_SEPARATOR } from "../constants.js";
import { publicName, wireName } from "./nodes.js";

/** Where a graph runs inside of others, from the outside in: each level is `node:task`, or the node alone. */
export type Levels = readonly string[];

/** The levels of a namespace that is written as one text, with the names that the server knows. */
export function parseNamespace(namespace: string): string[] {
  return namespace === "" ? [] : namespace.split(NAMESPACE_SEPARATOR).map((level) => rename(level, wireName));
}

/** A namespace as one text, with the names that programs know. */
export function formatNamespace(levels: Levels): string {
  return publicLevels(levels).join(NAMESPACE_SEPARATOR);
}

/** The levels of a namespace, with the names that programs know. */
export function publicLevels(levels: Levels): string[] {
  return levels.map((level) => rename(level, publicName));
}

/** The node of a level. */
export function nodeOfLevel(level: string): string {
  return level.split(TASK_SEPARATOR)[0] ?? "";
}

/** The task of a level; empty when it names the node alone. */
export function taskOfLevel(level: string): string {
  return level.slice(nodeOfLevel(level).length + 1);
}

function rename(level: string, change: (node: string) => string): string {
  const node = nodeOfLevel(level);
  return change(node) + level.slice(node.length);
}

/**
 * The levels of a graph among those that are known, where they name nodes without their tasks: the namespace
 * of a graph that persists names the nodes around it alone.
 */
export function findLevels(levels: Levels, known: Iterable<Levels>): Levels {
  const nodes = levels.map(nodeOfLevel);
  if (nodes.some((node, at) => node !== levels[at])) return levels;
  const found = [...known].filter((one) => isSame(one.map(nodeOfLevel), nodes));
  return found.some((one) => isSame(one, levels)) ? levels : (found.at(-1) ?? levels);
}

function isSame(one: Levels, other: Levels): boolean {
  return one.length === other.length && one.every((level, at) => level === other[at]);
}

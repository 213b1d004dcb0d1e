/** Names of nodes. The server reserves those that begin with two underscores; LangGraph gives them to handlers. */

const HANDLER_PREFIX = "__error_handler__";
/** The node that handles the failures of all nodes without a handler of their own. */
export const DEFAULT_HANDLER = "__default_error_handler__";
const WIRE_PREFIX = "error handler of ";
const WIRE_DEFAULT = "default error handler";

/** The name of a node in the server. */
export function wireName(node: string): string {
  if (node === DEFAULT_HANDLER) return WIRE_DEFAULT;
  if (node.startsWith(HANDLER_PREFIX)) return WIRE_PREFIX + node.slice(HANDLER_PREFIX.length);
  return node;
}

/** The name of a node in the program. */
export function publicName(node: string): string {
  if (node === WIRE_DEFAULT) return DEFAULT_HANDLER;
  if (node.startsWith(WIRE_PREFIX)) return HANDLER_PREFIX + node.slice(WIRE_PREFIX.length);
  return node;
}

/** The name of the error handler of a node, in the program. */
export function handlerName(node: string): string {
  return HANDLER_PREFIX + node;
}

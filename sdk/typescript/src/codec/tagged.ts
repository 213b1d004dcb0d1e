/**
 * Commands and sends inside of values, as the Python SDK writes them: `{"__graphd__": "send", …}`. They
 * are known by `lg_name`, so that those of another copy of the package count, too.
 */
const TAG = "__graphd__";

type Named = { lg_name?: unknown };

/** The plain form of a command, a send or an overwrite; `undefined` for other objects. */
export function toTaggedForm(value: object): Record<string, unknown> | undefined {
  switch ((value as Named).lg_name) {
    case "Command": {
      const { update, resume, goto, graph } = value as Record<string, unknown>;
      const places = Array.isArray(goto) && goto.length === 0 ? undefined : goto;
      return { [TAG]: "command", update, resume, goto: places, graph };
    }
    case "Send": {
      const { node, args } = value as Record<string, unknown>;
      return { [TAG]: "send", node, arg: args };
    }
    case "Overwrite":
      return { __overwrite__: (value as { value?: unknown }).value };
    default:
      return undefined;
  }
}

export type TaggedKind = "command" | "send" | "message";

/**
 * Replaces tagged objects in a decoded value by what `restore` makes of their kind and fields. What it
 * returns `undefined` for stays as it is: it came from elsewhere, and must stay readable.
 */
export function restoreTagged(
  value: unknown,
  restore: (kind: TaggedKind, fields: Record<string, unknown>) => unknown,
): unknown {
  if (Array.isArray(value)) return value.map((item) => restoreTagged(item, restore));
  if (typeof value !== "object" || value === null) return value;
  const fields: Record<string, unknown> = Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, restoreTagged(item, restore)]),
  );
  const { [TAG]: kind, ...rest } = fields;
  if (kind !== "command" && kind !== "send" && kind !== "message") return fields;
  return restore(kind, rest) ?? fields;
}

/** Whether JSON text may have something for `restoreTagged`. */
export function mayHaveTags(text: string): boolean {
  return text.includes(TAG);
}

// The filter box: words that narrow what is loaded, and conditions that the server finds by an index.

/** What a text of the filter box says. */
export interface Filter {
  /** As of ListInterrupts, "" for all. */
  condition: string;
  words: readonly string[];
  /** Only questions whose next step is overdue. */
  isLate: boolean;
  /** Only questions that are put off. */
  isLater: boolean;
  /** What can't be understood, "" for nothing. */
  problem: string;
}

const spans: Record<string, number> = { m: 60e3, h: 3600e3, d: 86400e3 };

/** Reads the text of a filter box; now is the time that due:<1h counts from. */
export function readFilter(text: string, now: number): Filter {
  const conditions: string[] = [];
  const filter: Filter = { condition: "", words: [], isLate: false, isLater: false, problem: "" };
  const words: string[] = [];
  for (const part of text.match(/[a-z]+:"[^"]*"|\S+/g) ?? []) {
    const [, name, quoted] = /^([a-z]+):(.*)$/.exec(part) ?? [];
    const value = (quoted ?? "").replaceAll('"', "");
    if (name === undefined) {
      words.push(part.toLowerCase());
      continue;
    }
    if (value === "") continue; // it is being typed
    const condition = readCondition(name, value, now);
    if (condition === undefined) filter.problem = `${name}: is no filter; want graph:, group:, by:, thread:, priority:, due:<1h, is:late or is:later`;
    else if (condition === "late") filter.isLate = true;
    else if (condition === "later") filter.isLater = true;
    else if (condition === "") filter.problem = `${part}: want ${name === "due" ? "a time like due:<30m, due:<1h or due:<2d" : "is:late or is:later"}`;
    else conditions.push(condition);
  }
  return { ...filter, condition: conditions.join(" AND "), words };
}

/** Returns undefined for a name that is none, and "" for a value that is none. */
function readCondition(name: string, value: string, now: number): string | undefined {
  const quoted = JSON.stringify(value);
  switch (name) {
    case "graph":
    case "group":
      return `${name} = ${quoted}`;
    case "thread":
      return `thread_id = ${quoted}`;
    case "by":
      return `claimed_by = ${quoted}`;
    case "for":
      return `assignee = ${quoted}`;
    case "priority":
      return `priority = ${JSON.stringify(value.toUpperCase())}`;
    case "is":
      return value === "late" || value === "later" ? value : "";
    case "due": {
      const [, n, unit] = /^<(\d+)([mhd])$/.exec(value) ?? [];
      return n === undefined ? "" : `due < ${JSON.stringify(new Date(now + Number(n) * spans[unit!]!).toISOString())}`;
    }
  }
  return undefined;
}

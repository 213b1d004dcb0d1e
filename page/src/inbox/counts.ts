// How many questions are open, for the navigation.

import type { CountInterruptsResponse } from "../api/messages";
import { client } from "../api/session";
import { Store } from "../api/store";
import { readFilter } from "./filter";

/** The numbers by the text of a filter, "" for all questions. */
export const openCounts = new Store<Readonly<Record<string, number>>>({});

const mostFilters = 4; // of a caller who may see only some questions

/** Counts all questions, and those of filters that an index counts. */
export async function countOpen(texts: readonly string[]): Promise<void> {
  const counted = ["", ...texts].flatMap((text) => {
    const f = readFilter(text, 0);
    return f.words.length > 0 || f.isLate || f.isLater || f.problem || / AND |^due|^claimed/.test(f.condition) ? [] : [{ text, condition: f.condition }];
  }).slice(0, mostFilters);
  const { counts } = await client.call<CountInterruptsResponse>("InterruptService/CountInterrupts", { filters: counted.map((c) => c.condition) });
  openCounts.set(Object.fromEntries(counted.map((c, i) => [c.text, Number(counts?.[i]?.count ?? 0)])));
}

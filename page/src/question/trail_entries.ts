// The trail of a question: what is read of it, and what is added.

import type { Interrupt, ListTrailResponse, TrailEntry } from "../api/messages";
import { client } from "../api/session";
import { nameOf } from "./actions";

const trailPage = 500;
const maxTrail = 5000;

/** Returns the whole trail of a question, oldest first. */
export async function fetchTrail(threadId: string, interruptId: string, signal?: AbortSignal): Promise<TrailEntry[]> {
  const entries: TrailEntry[] = [];
  for (let pageToken = ""; entries.length < maxTrail; ) {
    const page = await client.call<ListTrailResponse>("InterruptService/ListTrail", { threadId, interruptId, pageSize: trailPage, pageToken }, signal);
    entries.push(...(page.entries ?? []));
    pageToken = page.nextPageToken ?? "";
    if (pageToken === "") break;
  }
  return entries;
}

export function comment(q: Interrupt, text: string, requestId: string): Promise<TrailEntry> {
  return client.call("InterruptService/CommentInterrupt", { ...nameOf(q), text, requestId });
}

// What was typed into forms, kept in this browser for some days, and until its person signs out. Answers
// with secret parts are not kept.

import { ownName } from "../api/session";
import { type Json, parseJson, printJson } from "../json/value";

const prefix = "graphd.draft.";
const keptFor = 7 * 24 * 3600e3;
const maxDrafts = 200;

interface Stored {
  at: number;
  json: string;
  note: string;
}

export interface Draft {
  value: Json;
  note: string;
}

/** Returns where the draft of the caller is: who signs in next in this browser has others. */
function keyOf(id: string): string {
  return prefix + id + ownName();
}

function readDraft(key: string): (Draft & { at: number }) | undefined {
  try {
    const { at, json, note } = JSON.parse(localStorage.getItem(key) ?? "") as Stored;
    return { at, value: parseJson(json), note };
  } catch {
    return undefined; // there is none
  }
}

export function loadDraft(id: string): Draft | undefined {
  const draft = readDraft(keyOf(id));
  return draft && Date.now() - draft.at < keptFor ? draft : undefined;
}

export function saveDraft(id: string, draft: Draft): void {
  try {
    localStorage.setItem(keyOf(id), JSON.stringify({ at: Date.now(), json: printJson(draft.value), note: draft.note } satisfies Stored));
  } catch {
    dropOldDrafts(0); // the browser has no more room
  }
}

export function dropDraft(id: string): void {
  localStorage.removeItem(keyOf(id));
}

/** Drops drafts that are too old, and the oldest beyond a number. */
export function dropOldDrafts(most = maxDrafts): void {
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => ({ key, at: readDraft(key)?.at ?? 0 }))
    .sort((a, b) => b.at - a.at);
  drafts.filter((d, i) => i >= most || Date.now() - d.at > keptFor).forEach((d) => localStorage.removeItem(d.key));
}

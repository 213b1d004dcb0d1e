// What was typed into forms, kept in this browser for some days. Answers with secret parts are not kept.

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

export function loadDraft(id: string): Draft | undefined {
  try {
    const { at, json, note } = JSON.parse(localStorage.getItem(prefix + id) ?? "") as Stored;
    return Date.now() - at < keptFor ? { value: parseJson(json), note } : undefined;
  } catch {
    return undefined; // there is none
  }
}

export function saveDraft(id: string, draft: Draft): void {
  try {
    localStorage.setItem(prefix + id, JSON.stringify({ at: Date.now(), json: printJson(draft.value), note: draft.note } satisfies Stored));
  } catch {
    dropOldDrafts(0); // the browser has no more room
  }
}

export function dropDraft(id: string): void {
  localStorage.removeItem(prefix + id);
}

/** Drops drafts that are too old, and the oldest beyond a number. */
export function dropOldDrafts(most = maxDrafts): void {
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => ({ key, at: (JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<Stored>).at ?? 0 }))
    .sort((a, b) => b.at - a.at);
  drafts.filter((d, i) => i >= most || Date.now() - d.at > keptFor).forEach((d) => localStorage.removeItem(d.key));
}

// Filters that a person has kept, in this browser.

import { Store } from "../api/store";

const key = "graphd.views";
const most = 20;

export const savedViews = new Store<readonly string[]>(load());

function load(): string[] {
  try {
    const views: unknown = JSON.parse(localStorage.getItem(key) ?? '["due:<1h","priority:urgent"]');
    return Array.isArray(views) ? views.filter((v) => typeof v === "string").slice(0, most) : [];
  } catch {
    return [];
  }
}

export function saveViews(views: readonly string[]): void {
  savedViews.set(views.slice(-most));
  localStorage.setItem(key, JSON.stringify(savedViews.get()));
}

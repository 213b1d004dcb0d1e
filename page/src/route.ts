// The address is the state of the page: what is open, chosen and filtered can be sent to a colleague.

import { Store } from "./api/store";
import { decodeText } from "./text/address";

export type Screen = "inbox" | "threads" | "graphs" | "workers" | "overview";

export interface Route {
  screen: Screen;
  /** What is open: a thread and a question, a thread, or a graph. */
  path: readonly string[];
  query: URLSearchParams;
}

const screens: readonly Screen[] = ["inbox", "threads", "graphs", "workers", "overview"];

function readRoute(): Route {
  const [screen, ...path] = location.pathname.split("/").slice(1).filter(Boolean).map(decodeText);
  return { screen: screens.find((s) => s === screen) ?? "inbox", path, query: new URLSearchParams(location.search) };
}

export const route = new Store<Route>(readRoute());

addEventListener("popstate", () => route.set(readRoute()));

/** Returns the address of a place. */
export function addressOf(screen: Screen, path: readonly string[] = [], query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = given.length > 0 ? "?" + new URLSearchParams(given).toString() : "";
  return "/" + [screen, ...path].map(encodeURIComponent).join("/") + text;
}

/** Goes to an address; replace leaves no step to go back to. */
export function navigate(address: string, replace = false): void {
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  route.set(readRoute());
}

/** Makes links of the page go to their address without loading it. */
export function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.origin !== location.origin || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}

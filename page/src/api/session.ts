// Who calls: the token of this tab, and what the server knows of its caller.

import { CallError, Client } from "./connect";
import type { Caller, ServerInfo } from "./messages";
import { Store } from "./store";

const tokenKey = "graphd.token";

/** What is known of the caller. */
export type Session =
  | { state: "connecting" }
  | { state: "signed-in"; server: ServerInfo; caller: Caller | undefined }
  | { state: "signed-out"; message: string; caller: Caller | undefined } // the caller of before
  | { state: "unreachable"; since: number };

export const session = new Store<Session>({ state: "connecting" });

export const client = new Client(() => sessionStorage.getItem(tokenKey) ?? "");

/** Takes the token of a link out of the address, so that it is in no history. */
export function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("t");
  if (!token) return;
  sessionStorage.setItem(tokenKey, token);
  history.replaceState(null, "", location.pathname + location.search);
}

export async function signIn(token?: string): Promise<void> {
  if (token !== undefined) sessionStorage.setItem(tokenKey, token.trim());
  try {
    const server = await client.call<ServerInfo>("RegistryService/GetServerInfo", {});
    session.set({ state: "signed-in", server, caller: server.caller });
  } catch (err) {
    noteError(err);
    if (session.get().state === "connecting") session.set({ state: "unreachable", since: Date.now() });
  }
}

export function signOut(): void {
  sessionStorage.removeItem(tokenKey);
  session.set({ state: "signed-out", message: "", caller: undefined });
}

/** Must be told of every error of a call: an unknown caller signs in again, and what is shown and typed stays. */
export function noteError(err: unknown): void {
  if (err instanceof CallError && err.code === "unauthenticated") session.set({ state: "signed-out", message: err.message, caller: readCaller() });
}

function readCaller(): Caller | undefined {
  const s = session.get();
  return "caller" in s ? s.caller : undefined;
}

/** Returns the name of the caller, "" when the server knows no callers. */
export function ownName(): string {
  return readCaller()?.principal ?? "";
}

export function ownGroups(): readonly string[] {
  return readCaller()?.groups ?? [];
}

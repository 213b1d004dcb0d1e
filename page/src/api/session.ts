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

/** Returns the token of the link by which the page was opened, "" when there is none. */
export function readToken(): string {
  return location.hash.split("#t=")[1] ?? "";
}

export async function signIn(token?: string): Promise<void> {
  const before = ownName();
  if (token !== undefined) sessionStorage.setItem(tokenKey, token.trim());
  try {
    const server = await client.call<ServerInfo>("RegistryService/GetServerInfo", {});
    if (before !== "" && server.caller?.principal !== before) return location.reload(); // what is shown and typed is of another person
    session.set({ state: "signed-in", server, caller: server.caller });
  } catch (err) {
    noteError(err);
    if (session.get().state === "connecting") session.set({ state: "unreachable", since: Date.now() });
  }
}

/** Tells whether signing out has an effect: a proxy or a certificate names the caller again at once. */
export function canSignOut(how: string | undefined): boolean {
  return how !== "proxy" && how !== "certificate";
}

/** Must be told of every error of a call: an unknown caller signs in again, and what is shown and typed stays. */
export function noteError(err: unknown): void {
  if (!(err instanceof CallError) || err.code !== "unauthenticated") return;
  const before = session.get();
  const says = err.reason !== "NO_CREDENTIALS" || before.state === "signed-in" ? err.message : before.state === "signed-out" ? before.message : "";
  session.set({ state: "signed-out", message: says, caller: readCaller() });
}

function readCaller(): Caller | undefined {
  const s = session.get();
  return "caller" in s ? s.caller : undefined;
}

/** Returns a name of the caller, with its tenant, that no other caller has. */
export function describeCaller(): string {
  return JSON.stringify(readCaller() ?? "");
}

/** Returns the name of the caller, "" when the server knows no callers. */
export function ownName(): string {
  return readCaller()?.principal ?? "";
}

export function ownGroups(): readonly string[] {
  return readCaller()?.groups ?? [];
}

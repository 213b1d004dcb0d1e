// To whom a question is given.

import type { Interrupt } from "../api/messages";
import { client } from "../api/session";
import { nameOf } from "../question/actions";

export function assign(q: Interrupt, assignees: readonly string[]): Promise<Interrupt> {
  return client.call("InterruptService/UpdateInterrupt", { interrupt: { ...nameOf(q), assignees, etag: q.etag }, updateMask: "assignees" });
}

export function delegate(q: Interrupt, to: string): Promise<Interrupt> {
  return client.call("InterruptService/DelegateInterrupt", { ...nameOf(q), to });
}

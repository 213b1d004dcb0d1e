// What a caller does with a question. Every function makes one call.

import type { Interrupt, RevealInterruptResponse } from "../api/messages";
import { CallError } from "../api/connect";
import { client } from "../api/session";
import { type Json, printJson } from "../json/value";

export function nameOf(q: Interrupt): { threadId: string; interruptId: string } {
  return { threadId: q.threadId ?? "", interruptId: q.interruptId ?? "" };
}

export function fetchQuestion(threadId: string, interruptId: string, signal?: AbortSignal): Promise<Interrupt> {
  return client.call("InterruptService/GetInterrupt", { threadId, interruptId }, signal);
}

/** Tells whether the server says that the caller may do something with a question. */
export function isAllowed(q: Interrupt, action: "ANSWER" | "CLAIM" | "RELEASE" | "COMMENT" | "DELEGATE" | "ASSIGN" | "RETRACT" | "REVEAL"): boolean {
  return q.allowed?.includes(`INTERRUPT_ACTION_${action}`) ?? false;
}

/** Returns why the server refuses every answer of the caller, "" when it may take one. */
export async function fetchRefusal(q: Interrupt, signal?: AbortSignal): Promise<string> {
  if (isAllowed(q, "ANSWER") && !q.people?.notContributor) return "";
  if (q.reason === "breakpoint" || q.state !== "INTERRUPT_STATE_OPEN") return "";
  try {
    const responses = [{ interruptId: q.interruptId, dismissal: {} }]; // which fits every schema
    await client.call("InterruptService/CheckResponses", { threadId: q.threadId, responses }, signal);
  } catch (err) {
    if (err instanceof CallError && (err.reason === "ACCESS_DENIED" || err.reason === "INTERRUPT_CLAIMED")) return err.message.replace(/^access denied: question "[^"]*": /, "");
    if (signal?.aborted) throw err;
  }
  return ""; // the answer itself meets any other error
}

/** Stores an answer, and returns the question as it is then. The request id makes the call repeatable. */
export async function answer(q: Interrupt, outcome: { value: Json } | { dismissal: string }, note: string, requestId: string): Promise<Interrupt> {
  const given = "value" in outcome ? { value: { json: printJson(outcome.value) } } : { dismissal: { reason: outcome.dismissal } };
  const response = { interruptId: q.interruptId, ...given, ...(note && { note }), ...(q.seen && { seen: q.seen }) };
  const resume = { threadId: q.threadId, ...(q.reason === "breakpoint" ? {} : { responses: [response] }) };
  await client.call("GraphService/ResumeRun", { resume, requestId });
  return fetchQuestion(q.threadId ?? "", q.interruptId ?? "");
}

export function retract(q: Interrupt): Promise<Interrupt> {
  return client.call("InterruptService/RetractResponse", nameOf(q));
}

export function claim(q: Interrupt): Promise<Interrupt> {
  return client.call("InterruptService/ClaimInterrupt", nameOf(q));
}

export function release(q: Interrupt): Promise<Interrupt> {
  return client.call("InterruptService/ReleaseInterrupt", nameOf(q));
}

export function reveal(q: Interrupt, pointer: string): Promise<RevealInterruptResponse> {
  return client.call("InterruptService/RevealInterrupt", { ...nameOf(q), pointers: [pointer] });
}

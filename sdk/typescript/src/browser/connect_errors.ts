import { createCallError, type StatusDetail } from "../calls/index.js";
import type { GraphdError } from "../errors/index.js";

/** An error as the protocol of Connect writes it. */
type ConnectError = { code?: string; message?: string; details?: { type?: string; value?: string }[] };

/** The error of a body that is one. */
export function readConnectError({
  code = "unknown",
  message = "",
  details = [],
}: ConnectError): GraphdError {
  return createCallError(toGrpcCode(code), message, details.flatMap(readDetail));
}

/** The error of an answer that is none of the server, like that of a proxy. */
export function createHttpError(status: number): GraphdError {
  const code = CODES[status] ?? "UNKNOWN";
  return createCallError(code, `the answer has the status ${status}, and no error of graphd`, []);
}

/** The error of a request that got no answer. */
export function createNetworkError(cause: unknown): GraphdError {
  const message = `the server can't be reached: ${cause instanceof Error ? cause.message : String(cause)}`;
  return createCallError("UNAVAILABLE", message, []);
}

const CODES: Record<number, string> = {
  400: "INTERNAL",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "UNIMPLEMENTED",
  429: "UNAVAILABLE",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** The name of a code as gRPC has it; Connect spells one of them differently. */
function toGrpcCode(code: string): string {
  return code === "canceled" ? "CANCELLED" : code.toUpperCase();
}

function readDetail({ type = "", value = "" }: { type?: string; value?: string }): StatusDetail[] {
  return [{ type, value: decodeBase64(value) }];
}

function decodeBase64(text: string): Uint8Array {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

import { type ServiceError, status } from "@grpc/grpc-js";
import { createCallError, readStatusDetails } from "../calls/index.js";
import { type GraphdError, TLSError } from "../errors/index.js";
import { findRemedy } from "./connection_causes.js";

/** The error of a call, with its reason, metadata and violations. */
export function toGraphdError(error: ServiceError): GraphdError {
  const code = status[error.code] ?? "UNKNOWN";
  const trailer = error.metadata?.get("grpc-status-details-bin")[0];
  const details = trailer instanceof Uint8Array ? readStatusDetails(trailer) : [];
  const problem = createCallError(code, error.details, details);
  if (code !== "UNAVAILABLE" || problem.serverReason !== "") return problem;
  const remedy = findRemedy(problem.message);
  return remedy === undefined ? problem : new TLSError(`${problem.message}; ${remedy}`, { code });
}

/** The error of a stream: of the call, or of the code that reads its messages. */
export function toCallError(error: Error): Error {
  return isServiceError(error) ? toGraphdError(error) : error;
}

function isServiceError(error: unknown): error is ServiceError {
  const { code, details } = (error ?? {}) as Partial<ServiceError>;
  return error instanceof Error && typeof code === "number" && typeof details === "string";
}

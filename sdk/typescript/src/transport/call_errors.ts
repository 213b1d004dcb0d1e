import { type ServiceError, status } from "@grpc/grpc-js";
import { createCallError, readStatusDetails } from "../calls/index.js";
import { type GraphdError, ServerUnavailableError, TLSError } from "../errors/index.js";
import { findRemedy } from "./connection_causes.js";

/** What grpc-js says before the cause when no connection came about. */
const UNCONNECTED = "No connection established.";

/** What it says after the cause when there is nothing to add. */
const EMPTY_NOTE = /\.?\s*Resolution note:\s*$/;

/** The error of a call to the server at an address, with its reason, metadata and violations. */
export function toGraphdError(error: ServiceError, address = ""): GraphdError {
  const code = status[error.code] ?? "UNKNOWN";
  const trailer = error.metadata?.get("grpc-status-details-bin")[0];
  const details = trailer instanceof Uint8Array ? readStatusDetails(trailer) : [];
  const problem = createCallError(code, error.details.replace(EMPTY_NOTE, ""), details);
  if (code !== "UNAVAILABLE" || problem.serverReason !== "") return problem;
  const remedy = findRemedy(problem.message);
  if (remedy !== undefined) return new TLSError(`${problem.message}; ${remedy}`, { code });
  if (address === "" || !problem.message.startsWith(UNCONNECTED)) return problem;
  const cause = problem.message.slice(UNCONNECTED.length);
  return new ServerUnavailableError(
    `no graphd answers at ${address}; is \`graphd serve\` running there?${cause}`,
    { code },
  );
}

/** The error of a stream: of the call, or of the code that reads its messages. */
export function toCallError(error: Error, address = ""): Error {
  return isServiceError(error) ? toGraphdError(error, address) : error;
}

function isServiceError(error: unknown): error is ServiceError {
  const { code, details } = (error ?? {}) as Partial<ServiceError>;
  return error instanceof Error && typeof code === "number" && typeof details === "string";
}

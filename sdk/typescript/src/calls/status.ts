import { fromBinary } from "@bufbuild/protobuf";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from "../_gen/graphd/client/status_pb.js";
import { createGraphdError, type GraphdError, type GraphdErrorFields } from "../errors/index.js";

/** A detail of a status, as it travels. */
export type StatusDetail = { type: string; value: Uint8Array };

/** The details of an encoded `google.rpc.Status`. */
export function readStatusDetails(status: Uint8Array): StatusDetail[] {
  return fromBinary(StatusSchema, status).details.map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
}

/** The error of a call. `code` is the name of a code of gRPC, like `NOT_FOUND`. */
export function createCallError(
  code: string,
  message: string,
  details: readonly StatusDetail[],
): GraphdError {
  const fields: GraphdErrorFields = { code };
  for (const detail of details) Object.assign(fields, readDetail(detail));
  return createGraphdError(describe(message || code, fields), fields);
}

function readDetail({ type, value }: StatusDetail): GraphdErrorFields {
  switch (type) {
    case "google.rpc.ErrorInfo": {
      const { reason, metadata } = fromBinary(ErrorInfoSchema, value);
      return { reason, metadata };
    }
    case "google.rpc.BadRequest": {
      const { fieldViolations } = fromBinary(BadRequestSchema, value);
      return { violations: Object.fromEntries(fieldViolations.map((one) => [one.field, one.description])) };
    }
    case "google.rpc.RetryInfo": {
      const { retryDelay } = fromBinary(RetryInfoSchema, value);
      return retryDelay ? { retryDelay: Number(retryDelay.seconds) * 1000 + retryDelay.nanos / 1e6 } : {};
    }
    default:
      return {};
  }
}

/** The message, with the violations and open questions that it does not name itself, and what to do. */
function describe(message: string, { reason, violations = {}, metadata = {} }: GraphdErrorFields): string {
  let text = message;
  const wrong = Object.entries(violations);
  if (wrong.length > 0 && !wrong.some(([, said]) => text.includes(said))) {
    text += `: ${wrong.map(([field, said]) => `${field}: ${said}`).join("; ")}`;
  }
  const open = metadata.openInterruptIds;
  if (open && !text.includes(open)) text += ` (open: ${open.split(",").join(", ")})`;
  if (reason === "THREAD_BUSY" || metadata.threadState === "busy")
    text += "; invoke(null, …) waits for what that run comes to";
  return text;
}

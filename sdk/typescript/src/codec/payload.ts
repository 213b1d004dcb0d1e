import type { Payload } from "../_gen/graphd/v1/payload_pb.js";
import { type DecodeOptions, decode } from "./decode.js";
import { type EncodeOptions, encode } from "./encode.js";

/** A value as it travels. */
export function toPayload(value: unknown, options?: EncodeOptions): Payload {
  return textPayload(encode(value, options));
}

/** JSON text as it travels. A literal: `create` is dearer than what it makes here. */
export function textPayload(json: string): Payload {
  return {
    $typeName: "graphd.v1.Payload",
    body: { case: "json", value: json },
    mediaType: "",
    metadata: {},
  };
}

/** The value of a payload; `undefined` when it holds none. */
export function fromPayload(payload: Payload | undefined, options?: DecodeOptions): unknown {
  const text = payloadText(payload);
  return text === undefined ? undefined : decode(text, options);
}

/** The JSON text of a payload; `undefined` when it holds none. */
export function payloadText(payload: Payload | undefined): string | undefined {
  return payload?.body.case === "json" ? payload.body.value : undefined;
}

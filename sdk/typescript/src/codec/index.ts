export { type DecodeOptions, decode, refuseBigints } from "./decode.js";
export { type EncodeOptions, encode, encodeBase64, isStream } from "./encode.js";
export { fromPayload, payloadText, textPayload, toPayload } from "./payload.js";
export { formatPath, type Path, UnsafeNumberError, UnstorableValueError } from "./problems.js";
export { mayHaveTags, restoreTagged, type TaggedKind, toTaggedForm } from "./tagged.js";

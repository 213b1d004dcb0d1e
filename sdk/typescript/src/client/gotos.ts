import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GotoSchema } from "../_gen/graphd/v1/payload_pb.js";
import { toPayload } from "../codec/index.js";
import { END } from "../constants.js";
import { InvalidUpdateError } from "../errors/index.js";
import { wireName } from "../names/index.js";

type GivenSend = { lg_name: "Send"; node: string; args: unknown; timeout?: number | undefined };

/** Where a command leads; END leads nowhere. */
export function buildGotos(goto: unknown): MessageInitShape<typeof GotoSchema>[] {
  const places = goto === undefined || goto === null ? [] : Array.isArray(goto) ? goto : [goto];
  return places.filter((place) => place !== END).map(buildGoto);
}

function buildGoto(place: unknown): MessageInitShape<typeof GotoSchema> {
  if (!isSend(place)) return { target: { case: "node", value: wireName(String(place)) } };
  if (place.node === END) throw new InvalidUpdateError("Cannot send a packet to the END node");
  if (place.timeout !== undefined) {
    throw new InvalidUpdateError("a Send has no timeout of its own in graphd: give one to the node");
  }
  const send = { node: wireName(place.node), input: toPayload(place.args ?? null) };
  return { target: { case: "send", value: send } };
}

function isSend(value: unknown): value is GivenSend {
  return (value as { lg_name?: unknown } | null)?.lg_name === "Send";
}

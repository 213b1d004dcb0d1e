/** What programs write, as the server takes it: updates, and where to go. */

import { create } from "@bufbuild/protobuf";
import type { Goto } from "../_gen/graphd/v1/payload_pb.js";
import { GotoSchema } from "../_gen/graphd/v1/payload_pb.js";
import { encode, textPayload, UnstorableValueError } from "../codec/index.js";
import { END } from "../constants.js";
import { InvalidUpdateError } from "../errors/index.js";
import { wireName } from "../names/index.js";
import type { DeclaredKey } from "../state/index.js";
import { isSend, type Send } from "../values/index.js";

/** The JSON text of a value; the error of one that has none says what it is. */
export function writeText(what: string, value: unknown, key?: DeclaredKey): string {
  try {
    return key ? key.write(value) : encode(value);
  } catch (error) {
    if (error instanceof UnstorableValueError) throw error.inside(what);
    throw error;
  }
}

/** The JSON text of an object of keys of the state. */
export function writeFields(
  fields: readonly [string, unknown][],
  keys: ReadonlyMap<string, DeclaredKey>,
): string {
  const parts = fields.map(
    ([name, value]) => `${JSON.stringify(name)}:${writeText(name, value, keys.get(name))}`,
  );
  return `{${parts.join(",")}}`;
}

/** Where a command or a conditional edge leads; END leads nowhere. */
export function buildGotos(targets: unknown): Goto[] {
  const list = Array.isArray(targets) ? targets : [targets];
  return list.filter((one) => one !== END && one !== undefined).map(buildGoto);
}

function buildGoto(target: unknown): Goto {
  if (isSend(target)) return create(GotoSchema, { target: { case: "send", value: buildSend(target) } });
  if (typeof target !== "string") {
    throw new InvalidUpdateError(
      `goto takes names of nodes and Sends, not ${target === null ? "null" : typeof target}`,
    );
  }
  return create(GotoSchema, { target: { case: "node", value: wireName(target) } });
}

function buildSend(send: Send) {
  if (send.node === END) throw new InvalidUpdateError("a Send can't lead to the END node");
  if (send.timeout !== undefined) {
    throw new InvalidUpdateError("a Send has no timeout of its own in graphd; give one to the node");
  }
  const input = writeText(`the input of the Send to "${send.node}"`, send.args ?? null);
  return { node: wireName(send.node), input: textPayload(input) };
}

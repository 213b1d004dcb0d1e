import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Cursor, CursorSchema } from "../_gen/graphd/v1/payload_pb.js";
import { InvalidArgumentError } from "../errors/index.js";

/** A position in the log of a thread as text, to keep and to go on from. */
export function formatCursor({ logId, sequence, mark }: Cursor): string {
  return `${logId}/${sequence}/${mark}`;
}

export function parseCursor(text: string): MessageInitShape<typeof CursorSchema> {
  const [, logId, sequence, mark] = /^([^/]+)\/(\d+)\/(\d+)$/.exec(text) ?? [];
  if (logId === undefined || sequence === undefined) {
    const problem = `after is ${JSON.stringify(text)}: want the cursor of an item`;
    throw new InvalidArgumentError(problem, { violations: { after: problem } });
  }
  return { logId, sequence: BigInt(sequence), mark: Number(mark) };
}

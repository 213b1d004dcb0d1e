import { decode, encode } from "../codec/index.js";
import type { Levels } from "../names/index.js";

/** What a client knows of a graph: how its values are read and written, and what is inside of it. */
export interface GraphShape {
  /** The shape of a graph inside, by its levels; of this one for none. */
  findGraph(levels: Levels): GraphShape | undefined;
  /** A state, an update or a part of one, from its JSON text. */
  decodeState(json: string): unknown;
  /** The input of a node, from its JSON text. */
  decodeInput(json: string): unknown;
  /** JSON text of an input or an update. */
  encodeUpdate(update: unknown): string;
  /** The keys that show of a state; all when it is left out. */
  readonly shownKeys: string | readonly string[] | undefined;
  /** The state is one value, without keys. */
  readonly isRoot: boolean;
  /** Keys that are there for one superstep. */
  readonly shortLivedKeys: ReadonlySet<string>;
  /** What a node was declared with. */
  nodeMetadata(node: string): Readonly<Record<string, unknown>>;
  /** How the graph in a node keeps its state; left out when there is no graph, or none that is known. */
  nestedPersistence(node: string): "own" | "inherit" | "none" | undefined;
  /** A stored message as an object. */
  readMessage(stored: Record<string, unknown>): unknown;
}

/** The shape of graphs that a client does not know: their values are what is stored. */
export const UNKNOWN_GRAPH: GraphShape = {
  findGraph: () => UNKNOWN_GRAPH,
  decodeState: (json) => decode(json),
  decodeInput: (json) => decode(json),
  encodeUpdate: (update) => encode(update),
  shownKeys: undefined,
  isRoot: false,
  shortLivedKeys: new Set(),
  nodeMetadata: () => ({}),
  nestedPersistence: () => undefined,
  readMessage: (stored) => stored,
};

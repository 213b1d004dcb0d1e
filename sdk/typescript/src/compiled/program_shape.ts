/** What clients have to know of a program: how its values are read and written. */
import type { GraphShape } from "../client/index.js";
import { ROOT } from "../constants.js";
import { type Program, writeFields, writeText } from "../declare/index.js";
import { restoreMessage } from "../messages/restored_message.js";
import { decodeValue, readUpdate } from "../state/index.js";

const PERSISTENCE = { persist: "own", inherit: "inherit", disabled: "none" } as const;
const SHORT_LIVED = new Set(["any", "ephemeral", "topic_once"]);

export class ProgramShape implements GraphShape {
  readonly shortLivedKeys: ReadonlySet<string>;
  readonly shownKeys: readonly string[] | undefined;

  constructor(private readonly program: Program) {
    const keys = [...program.keys.values()];
    this.shortLivedKeys = new Set(
      keys.filter((key) => SHORT_LIVED.has(key.declaration.reducer)).map((key) => key.name),
    );
    this.shownKeys = program.outputKeys;
  }

  get isRoot(): boolean {
    return this.program.keys.has(ROOT);
  }

  findGraph(levels: readonly string[]): GraphShape | undefined {
    const found = this.program.findGraph(levels);
    return found === this.program ? this : found && new ProgramShape(found);
  }

  decodeState(json: string): unknown {
    const { keys } = this.program;
    const hasSchemas = [...keys.values()].some(({ hasSchema }) => hasSchema);
    const value = decodeValue(json, hasSchemas);
    if (this.isRoot) return keys.get(ROOT)?.restore(value);
    if (!hasSchemas || typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, keys.get(name)?.restore(item) ?? item]),
    );
  }

  decodeInput(json: string): unknown {
    return this.decodeState(json);
  }

  encodeUpdate(update: unknown): string {
    const { keys } = this.program;
    if (this.isRoot) return writeText("the input", update, keys.get(ROOT));
    return writeFields(
      readUpdate(update, undefined).filter(([, value]) => value !== undefined),
      keys,
    );
  }

  nodeMetadata(node: string): Readonly<Record<string, unknown>> {
    return this.program.nodes.get(node)?.metadata ?? {};
  }

  nestedPersistence(node: string): "own" | "inherit" | "none" | undefined {
    const persistence = this.program.nodes.get(node)?.subgraph?.persistence;
    return persistence && PERSISTENCE[persistence];
  }

  readMessage(stored: Record<string, unknown>): unknown {
    return restoreMessage(stored);
  }
}

import { type DecodeOptions, decode, mayHaveTags } from "../codec/index.js";
import { mayHaveMessages } from "../messages/restored_message.js";

type Unsafe = NonNullable<DecodeOptions["unsafe"]>;

/** JSON text that several tasks read. Each gets objects of its own, because a node may change them. */
export class RepeatedText {
  private reads = 0;
  private decoded: { unsafe: Unsafe; value: unknown } | undefined;
  private hints: { tags: boolean; messages: boolean } | undefined;

  constructor(readonly text: string) {}

  /** What `decode` makes of the text. To copy that is much cheaper than to parse and to check the numbers again. */
  decode(unsafe: Unsafe): unknown {
    if (this.decoded?.unsafe === unsafe) return copyDecoded(this.decoded.value);
    const value = decode(this.text, { unsafe });
    // A text that is read once need not be kept twice.
    if (++this.reads > 1) this.decoded = { unsafe, value: copyDecoded(value) };
    return value;
  }

  /** Whether there may be something for `restoreTagged`. */
  get hasTags(): boolean {
    return this.readHints().tags;
  }

  /** Whether there may be messages. */
  get hasMessages(): boolean {
    return this.readHints().messages;
  }

  private readHints() {
    this.hints ??= { tags: mayHaveTags(this.text), messages: mayHaveMessages(this.text) };
    return this.hints;
  }
}

/** A copy of what `decode` has returned. */
function copyDecoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyDecoded);
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const field = copyDecoded((value as Record<string, unknown>)[key]);
    // To assign this key would set the prototype.
    if (key === "__proto__") {
      Object.defineProperty(copy, key, {
        value: field,
        configurable: true,
        enumerable: true,
        writable: true,
      });
    } else copy[key] = field;
  }
  return copy;
}

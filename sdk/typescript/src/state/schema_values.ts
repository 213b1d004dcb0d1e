/** Brings stored values back as a zod schema declares them: dates, bigints, maps, sets. */

type Decode = (value: unknown) => unknown;

type Definition = {
  type?: unknown;
  typeName?: string;
  innerType?: unknown;
  schema?: unknown;
  in?: unknown;
  out?: unknown;
  left?: unknown;
  right?: unknown;
  catchall?: unknown;
  element?: unknown;
  shape?: unknown;
  keyType?: unknown;
  valueType?: unknown;
  options?: unknown;
  items?: unknown;
  getter?: () => unknown;
};

/** A function that makes what a schema declares of a stored value; `undefined` when that is as stored. */
export function createSchemaDecoder(schema: unknown): Decode | undefined {
  return new DecoderBuilder().build(schema);
}

class DecoderBuilder {
  private readonly known = new Map<unknown, Decode | undefined>();

  build(schema: unknown): Decode | undefined {
    const definition = definitionOf(schema);
    if (definition === undefined) return undefined;
    if (this.known.has(schema)) return this.known.get(schema);
    // A schema that contains itself finds this in its parts, and the real one when it is called.
    this.known.set(schema, (value) => this.known.get(schema)?.(value) ?? value);
    const made = this.buildKind(kindOf(definition), definition);
    this.known.set(schema, made);
    return made;
  }

  private buildKind(kind: string, definition: Definition): Decode | undefined {
    switch (kind) {
      case "bigint":
        return (value) => (typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value);
      case "date":
        return (value) => (typeof value === "string" ? new Date(value) : value);
      case "array":
        return this.buildList(definition.element ?? definition.type);
      case "set":
        return this.buildSet(definition);
      case "map":
        return this.buildMap(definition);
      case "record":
        return this.buildRecord(definition);
      case "object":
        return this.buildObject(definition);
      case "tuple":
        return this.buildTuple(definition);
      case "union":
      case "discriminatedunion":
        return this.buildUnion(definition);
      case "intersection":
        return this.buildBoth(definition);
      case "pipe":
      case "pipeline":
        return this.buildPipe(definition);
      case "lazy":
        return (value) => this.build(definition.getter?.())?.(value) ?? value;
      default:
        return this.build(definition.innerType ?? definition.schema ?? objectType(definition.type));
    }
  }

  private buildList(element: unknown): Decode | undefined {
    const decode = this.build(element);
    return decode && ((value) => (Array.isArray(value) ? value.map(decode) : value));
  }

  private buildSet(definition: Definition): Decode {
    const decode = this.build(definition.valueType) ?? keep;
    return (value) => (Array.isArray(value) ? new Set(value.map(decode)) : value);
  }

  private buildMap(definition: Definition): Decode {
    const key = this.build(definition.keyType) ?? keep;
    const item = this.build(definition.valueType) ?? keep;
    return (value) =>
      Array.isArray(value)
        ? new Map((value as [unknown, unknown][]).map(([k, v]) => [key(k), item(v)]))
        : value;
  }

  private buildRecord(definition: Definition): Decode | undefined {
    const decode = this.build(definition.valueType);
    return decode && ((value) => mapFields(value, (_, item) => decode(item)));
  }

  private buildObject(definition: Definition): Decode | undefined {
    const shape = typeof definition.shape === "function" ? definition.shape() : definition.shape;
    const parts = Object.entries((shape ?? {}) as object);
    const decoders = new Map(parts.map(([key, part]) => [key, this.build(part)]));
    const other = this.build(definition.catchall);
    if (other === undefined && [...decoders.values()].every((one) => one === undefined)) return undefined;
    return (value) =>
      mapFields(value, (key, item) => ((decoders.has(key) ? decoders.get(key) : other) ?? keep)(item));
  }

  private buildBoth(definition: Definition): Decode | undefined {
    const left = this.build(definition.left);
    const right = this.build(definition.right);
    return left && right ? (value) => right(left(value)) : (left ?? right);
  }

  /** What comes out of a pipe is stored. That of a function is taken to have the type of what it gets. */
  private buildPipe(definition: Definition): Decode | undefined {
    const isFunction = kindOf(definitionOf(definition.out) ?? {}) === "transform";
    return this.build(isFunction ? definition.in : definition.out);
  }

  private buildTuple(definition: Definition): Decode | undefined {
    const decoders = ((definition.items ?? []) as unknown[]).map((item) => this.build(item));
    if (decoders.every((one) => one === undefined)) return undefined;
    return (value) => (Array.isArray(value) ? value.map((item, at) => (decoders[at] ?? keep)(item)) : value);
  }

  private buildUnion(definition: Definition): Decode | undefined {
    const options = [...(definition.options as Iterable<unknown>)];
    const decoders = options.map((option) => ({ option, decode: this.build(option) }));
    if (decoders.every(({ decode }) => decode === undefined)) return undefined;
    return (value) => {
      for (const { option, decode = keep } of decoders) {
        const read = decode(value);
        if (accepts(option, read)) return read;
      }
      return value;
    };
  }
}

function definitionOf(schema: unknown): Definition | undefined {
  const holder = schema as { _zod?: { def?: Definition }; _def?: Definition } | null | undefined;
  return holder?._zod?.def ?? holder?._def;
}

/** The kind in a word: version 4 has it as `type`, version 3 as `typeName`. */
function kindOf(definition: Definition): string {
  if (typeof definition.typeName === "string") return definition.typeName.replace(/^Zod/, "").toLowerCase();
  return typeof definition.type === "string" ? definition.type : "";
}

/** The type of a branded schema of version 3. */
function objectType(type: unknown): unknown {
  return typeof type === "object" ? type : undefined;
}

function accepts(schema: unknown, value: unknown): boolean {
  try {
    return (schema as { safeParse(value: unknown): { success: boolean } }).safeParse(value).success;
  } catch {
    return false; // it checks asynchronously
  }
}

function mapFields(value: unknown, change: (key: string, item: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(key, item)]));
}

function keep(value: unknown): unknown {
  return value;
}

import { BaseLangGraphError } from "../errors/index.js";

export type Path = readonly (string | number)[];

/** A value has no JSON form that brings it back. `path` says where it is. */
export class UnstorableValueError extends BaseLangGraphError {
  constructor(
    readonly problem: string,
    readonly path: Path = [],
  ) {
    super(path.length === 0 ? problem : `${formatPath(path)}: ${problem}`);
  }

  static override get unminifiable_name(): string {
    return "UnstorableValueError";
  }

  /** The same error, of a value that holds this one under a key. */
  inside(key: string | number): UnstorableValueError {
    return new UnstorableValueError(this.problem, [key, ...this.path]);
  }
}

/** A stored number would be rounded. `path` says where it is, `text` is the number. */
export class UnsafeNumberError extends BaseLangGraphError {
  constructor(
    readonly text: string,
    readonly path: Path = [],
  ) {
    super(
      `${path.length === 0 ? "the value" : formatPath(path)}: ${text} is beyond what a number of JavaScript holds: ` +
        "declare it as bigint, like z.bigint()",
    );
  }

  static override get unminifiable_name(): string {
    return "UnsafeNumberError";
  }

  /** The same error, of a value that holds this one under a key. */
  inside(key: string | number): UnsafeNumberError {
    return new UnsafeNumberError(this.text, [key, ...this.path]);
  }
}

/** A path as a program would write it: `orders[0].total`. */
export function formatPath(path: Path): string {
  return path
    .map((part, depth) => {
      if (typeof part === "number") return `[${part}]`;
      if (!/^[A-Za-z_$][\w$]*$/.test(part)) return `[${JSON.stringify(part)}]`;
      return depth === 0 ? part : `.${part}`;
    })
    .join("");
}

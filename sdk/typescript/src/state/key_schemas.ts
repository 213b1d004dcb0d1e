/** The schemas of a key: they read what is written to it, and throw for what they do not take. */
import { InvalidUpdateError } from "../errors/index.js";
import { isOverwrite, Overwrite } from "../values/index.js";
import type { StandardSchema } from "./standard_schema.js";

/** Reads a value that is written to a key. The result may be a promise. */
type Parse = (key: string, schema: unknown, value: unknown) => unknown;

export class KeySchemas {
  constructor(
    private readonly parse: Parse,
    /** Of the value of the key. */
    readonly value: unknown,
    /** Of what is written to it, where a reducer takes something else. */
    private readonly written: unknown = value,
  ) {}

  /** What is written, as the schema reads it. It may be a promise. */
  read(key: string, given: unknown): unknown {
    if (!isOverwrite(given)) return this.parse(key, this.written, given);
    const whole = this.parse(key, this.value, given.__overwrite__);
    return whole instanceof Promise ? whole.then((value) => new Overwrite(value)) : new Overwrite(whole);
  }
}

type Issue = {
  message: string;
  path?: readonly unknown[] | undefined;
  /** What each option of a union does not take: of zod 4, and of zod 3. */
  errors?: readonly (readonly Issue[])[];
  unionErrors?: readonly { issues: readonly Issue[] }[];
};

type ZodSchema = {
  safeParse(value: unknown): { success: true; data: unknown } | { success: false; error: ZodError };
};
type ZodError = Error & { issues: Issue[]; addIssues?: (issues: Issue[]) => void };

/** Throws the error of zod, whose issues name the key as if the whole state had been read. */
export function parseByZod(key: string, schema: unknown, value: unknown): unknown {
  const result = (schema as ZodSchema).safeParse(value);
  if (result.success) return result.data;
  const { error } = result;
  for (const issue of error.issues) issue.path = [key, ...(issue.path ?? [])];
  error.addIssues?.([]); // writes its message anew
  throw error;
}

/** Throws an `InvalidUpdateError` that names the key and what is wrong. */
export function parseByStandard(key: string, schema: unknown, value: unknown): unknown {
  const result = (schema as StandardSchema)["~standard"].validate(value);
  return result instanceof Promise
    ? result.then((settled) => readResult(key, settled))
    : readResult(key, result);
}

function readResult(key: string, result: unknown): unknown {
  const { value, issues } = result as { value?: unknown; issues?: readonly Issue[] };
  if (!issues) return value;
  const problems = issues.map((issue) => describeIssue({ ...issue, path: [key, ...(issue.path ?? [])] }));
  throw new InvalidUpdateError(`the schema of the state does not take the update: ${problems.join("; ")}`);
}

function describeIssue({ message, path = [], errors, unionErrors }: Issue): string {
  const place = path.map(nameOfSegment).join(".");
  const options = errors ?? unionErrors?.map(({ issues }) => issues) ?? [];
  const told = options.map((issues) => issues.map(describeIssue).join(", ")).join(", or ");
  return `${place && `${place}: `}${message}${told && ` (${told})`}`;
}

/** A segment of a path is a key, or an object that has it. */
function nameOfSegment(segment: unknown): string {
  return String((segment as { key?: unknown } | null)?.key ?? segment);
}

/** Schemas of any library that keeps to Standard Schema. */

/** What Standard Schema libraries have in common. */
export type StandardSchema<Input = any, Output = any> = {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
};

export function isStandardSchema(value: unknown): value is StandardSchema {
  return (value as { "~standard"?: unknown } | null | undefined)?.["~standard"] !== undefined;
}

/** Codes that LangGraph documents, as `lc_error_code` of its errors. */
export type ErrorCode =
  | "GRAPH_RECURSION_LIMIT"
  | "INVALID_CONCURRENT_GRAPH_UPDATE"
  | "INVALID_GRAPH_NODE_RETURN_VALUE"
  | "MISSING_CHECKPOINTER"
  | "MULTIPLE_SUBGRAPHS"
  | "UNREACHABLE_NODE"
  | (string & {});

export type BaseErrorFields = { lc_error_code?: ErrorCode; cause?: unknown };

export type BaseLangGraphErrorFields = BaseErrorFields;

/** What all errors of this package are. */
export class BaseLangGraphError extends Error {
  declare lc_error_code?: ErrorCode;

  constructor(message?: string, fields: BaseErrorFields = {}) {
    super(message, "cause" in fields ? { cause: fields.cause } : undefined);
    this.name = new.target.unminifiable_name;
    if (fields.lc_error_code !== undefined) this.lc_error_code = fields.lc_error_code;
  }

  /** The name of the class, which stays when a bundler renames it. */
  static get unminifiable_name(): string {
    return "BaseLangGraphError";
  }
}

/** Whether a value is an error of one of the names: of this copy of the package, or of another. */
export function hasErrorName(value: unknown, ...names: string[]): boolean {
  const name = (value as { name?: unknown } | null | undefined)?.name;
  return typeof name === "string" && names.includes(name);
}

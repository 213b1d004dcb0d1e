import { type BaseErrorFields, BaseLangGraphError } from "./base.js";

export type GraphdErrorFields = BaseErrorFields & {
  reason?: string;
  code?: string;
  metadata?: Readonly<Record<string, string>>;
  violations?: Readonly<Record<string, string>>;
  retryDelay?: number | undefined;
};

/**
 * graphd refused a call. `reason` is stable, the message is for people.
 *
 * `serverReason` is the reason as the server has it: the same but for `UnknownInterruptError`. `code` is
 * the code of gRPC. `violations` says by field what is wrong. `retryDelay` is how many milliseconds the
 * server asks to wait, `undefined` when it says nothing.
 */
export class GraphdError extends BaseLangGraphError {
  reason: string;
  readonly serverReason: string;
  readonly code: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: Readonly<Record<string, string>>;
  readonly retryDelay: number | undefined;

  constructor(message?: string, fields: GraphdErrorFields = {}) {
    super(message, fields);
    this.reason = fields.reason ?? "";
    this.serverReason = this.reason;
    this.code = fields.code ?? "";
    this.metadata = fields.metadata ?? {};
    this.violations = fields.violations ?? {};
    this.retryDelay = fields.retryDelay;
  }

  static override get unminifiable_name(): string {
    return "GraphdError";
  }
}

/** Whether an error is a `GraphdError`, and has the reason if one is given. */
export function isGraphdError(value: unknown, reason?: string): value is GraphdError {
  if (!(value instanceof Error) || typeof (value as Partial<GraphdError>).serverReason !== "string")
    return false;
  const error = value as GraphdError;
  return reason === undefined || error.reason === reason || error.serverReason === reason;
}

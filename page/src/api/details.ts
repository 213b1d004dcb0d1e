// The details of an error: google.rpc.ErrorInfo and google.rpc.BadRequest as JSON.

export interface ErrorDetail {
  type: string;
  debug?: {
    reason?: string;
    metadata?: Record<string, string>;
    fieldViolations?: { field?: string; description?: string }[];
  };
}

export function readDetails(details: readonly ErrorDetail[]): {
  reason: string;
  metadata: Record<string, string>;
  violations: { field: string; description: string }[];
} {
  const find = (type: string): ErrorDetail["debug"] => details.find((d) => d.type === "google.rpc." + type)?.debug;
  const info = find("ErrorInfo");
  return {
    reason: info?.reason ?? "",
    metadata: info?.metadata ?? {},
    violations: (find("BadRequest")?.fieldViolations ?? []).map((v) => ({ field: v.field ?? "", description: v.description ?? "" })),
  };
}

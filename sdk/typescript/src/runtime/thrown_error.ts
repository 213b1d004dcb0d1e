/** What thrown values say of themselves, in a form that can be sent. */
const LONGEST_TEXT = 4096;
const LONGEST_KIND = 128;
const LONGEST_STACK = 8192;

type ErrorLike = { name?: unknown; message?: unknown; stack?: unknown; type?: unknown };

/** The name of the class of an error; of a failure in a called graph, that of the error there. */
export function kindOfError(thrown: unknown): string {
  const error = asError(thrown);
  const remote = error.name === "RemoteNodeError" && typeof error.type === "string" ? error.type : "";
  return truncate(remote || String(error.name || "Error"), LONGEST_KIND);
}

export function textOfError(thrown: unknown): string {
  try {
    return truncate(String(asError(thrown).message ?? ""), LONGEST_TEXT);
  } catch {
    return "the text of the error can't be had";
  }
}

export function stackOfError(thrown: unknown): string {
  const { stack } = asError(thrown);
  return typeof stack === "string" ? truncate(stack, LONGEST_STACK) : "";
}

/** Names of the classes that an error is of, besides its own, innermost first. */
export function baseTypesOfError(thrown: unknown): string[] {
  const names: string[] = [];
  let prototype: unknown =
    typeof thrown === "object" && thrown !== null ? Object.getPrototypeOf(thrown) : null;
  while (prototype !== null && prototype !== undefined && prototype !== Object.prototype) {
    const { name } = (prototype as { constructor: { name: string } }).constructor;
    if (name !== kindOfError(thrown) && !names.includes(name)) names.push(name);
    prototype = Object.getPrototypeOf(prototype);
  }
  return names;
}

/** Whether a failure came of this error. */
export function matchesFailure(failure: { type: string; message: string }, thrown: unknown): boolean {
  return failure.type === kindOfError(thrown) && failure.message === textOfError(thrown);
}

function asError(thrown: unknown): ErrorLike {
  if (typeof thrown === "object" && thrown !== null) return thrown as ErrorLike;
  return { name: "Error", message: String(thrown) };
}

function truncate(text: string, longest: number): string {
  const wellFormed = text.replace(/\p{Surrogate}/gu, "\ufffd");
  const bytes = new TextEncoder().encode(wellFormed);
  if (bytes.length <= longest) return wellFormed;
  return `${new TextDecoder().decode(bytes.slice(0, longest - 3)).replace(/\ufffd$/, "")}…`;
}

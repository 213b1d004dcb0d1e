/** Where the runtime takes warnings, as Node does. */
type Host = { process?: { emitWarning?(message: string, options: { type: string; code: string }): void } };

/** Tells of what keeps a call from going on and is no error yet: as a warning of the process, or in the console. */
export function emitWarning(message: string, code: string): void {
  const { process } = globalThis as Host;
  if (process?.emitWarning !== undefined) process.emitWarning(message, { type: "GraphdWarning", code });
  else console.warn(`graphd: ${message} (${code})`);
}

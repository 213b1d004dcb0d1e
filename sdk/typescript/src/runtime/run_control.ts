/** Lets a program ask its own run to stop between two supersteps. */
export class RunControl {
  private reason: string | undefined;
  private readonly listeners = new Set<(reason: string) => void>();

  /** Asks the run to stop after the superstep that is under way. */
  requestDrain(reason = "shutdown"): void {
    this.reason = reason;
    for (const listener of [...this.listeners]) listener(reason);
  }

  get drainRequested(): boolean {
    return this.reason !== undefined;
  }

  get drainReason(): string | undefined {
    return this.reason;
  }

  /** Calls the listener when a stop is asked for; returns how to end that. */
  onDrain(listener: (reason: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

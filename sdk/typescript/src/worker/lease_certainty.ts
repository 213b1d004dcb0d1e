/** How sure a worker can be that its tasks are still its own. */

const SHARE = 0.8; // of the time after which the server gives up on a silent worker
const SILENT_BEATS = 3;

/**
 * Sure is who was answered a short while ago: a beat, or a greeting, whose answer would have named what is lost. A
 * process that was paused, or cut off, is not sure until it has asked again.
 */
export class LeaseCertainty {
  private asked = new Map<bigint, number>();
  private since = Number.NEGATIVE_INFINITY;
  private span = 1000;
  private waiting: (() => void)[] = [];

  /** A beat, or with number 0 the greeting, is on its way. */
  recordQuestion(number: bigint): void {
    if (number === 0n) this.asked.clear();
    this.asked.set(number, performance.now());
  }

  recordAnswer(number: bigint): void {
    this.since = this.asked.get(number) ?? this.since;
    for (const known of [...this.asked.keys()]) if (known <= number) this.asked.delete(known);
    this.wake();
  }

  /** The connection is broken: what was lost with it is unknown. */
  recordDisconnect(): void {
    this.asked.clear();
    this.since = Number.NEGATIVE_INFINITY;
  }

  /** The server has said for how long it waits; in milliseconds. */
  setIntervals(beat: number, lease: number): void {
    this.span = SHARE * Math.min(SILENT_BEATS * beat, lease);
  }

  get isSure(): boolean {
    return performance.now() - this.since < this.span;
  }

  /** Lets those that wait look again. */
  wake(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }

  async waitUntil(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

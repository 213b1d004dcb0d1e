/** How many messages wait for a reader before the stream is held. */
const MOST = 64;

type Flow = { pause(): void; resume(): void };

/** Messages between a stream, which adds them, and one reader. */
export class MessageQueue<T> implements AsyncIterator<T, undefined> {
  private readonly waiting: T[] = [];
  private wake: (() => void) | undefined;
  private ended = false;
  private error: Error | undefined;
  private held = false;

  constructor(private readonly flow: Flow) {}

  add(message: T): void {
    this.waiting.push(message);
    if (this.waiting.length >= MOST && !this.held) {
      this.held = true;
      this.flow.pause();
    }
    this.wake?.();
  }

  /** Nothing follows: with an error, which the reader gets after what came before it. */
  end(error?: Error): void {
    if (this.ended) return;
    this.ended = true;
    this.error = error;
    this.wake?.();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    while (this.waiting.length === 0) {
      if (this.ended) {
        const { error } = this;
        this.error = undefined;
        if (error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      this.wake = undefined;
    }
    const value = this.waiting.shift() as T;
    if (this.held && this.waiting.length < MOST / 2) {
      this.held = false;
      this.flow.resume();
    }
    return { done: false, value };
  }
}

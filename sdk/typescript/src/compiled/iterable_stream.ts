import type { ReadableStream as NodeStream } from "node:stream/web";

/** Chunks that come as they happen: an async iterator, and a stream of the web. */
export class IterableReadableStream<T> extends ReadableStream<T> implements AsyncIterableIterator<T> {
  private reader: ReadableStreamDefaultReader<T> | undefined;

  /** Begins at once; the rest comes as it is read. */
  static from<T>(source: AsyncGenerator<T>): IterableReadableStream<T> {
    let next: Promise<IteratorResult<T>> | undefined = source.next();
    next.catch(() => {}); // it is thrown where it is read
    return new IterableReadableStream<T>(
      {
        async pull(controller) {
          const { done, value } = await (next ?? source.next());
          next = undefined;
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          await source.return(undefined);
        },
      },
      { highWaterMark: 0 },
    );
  }

  async next(): Promise<IteratorResult<T>> {
    this.reader ??= this.getReader();
    const { done, value } = await this.reader.read();
    return done ? { done: true, value: undefined } : { done: false, value: value as T };
  }

  async return(): Promise<IteratorResult<T>> {
    this.reader ??= this.getReader();
    await this.reader.cancel();
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<IteratorResult<T>> {
    await this.return();
    throw error;
  }

  override [Symbol.asyncIterator](): ReturnType<NodeStream<T>["values"]> {
    return this as never;
  }
}

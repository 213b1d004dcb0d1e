// A value that changes and tells those who show it.

import { useLayoutEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();
  private scheduled = false;

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    this.value = value;
    this.tell();
  }

  /** Changes that come together are told of once. */
  private tell(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      for (const listener of [...this.listeners]) listener();
    });
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Returns the value of a store, and shows each new one. */
export function useStore<T>(store: Store<T>): T {
  const [, show] = useState(0);
  const value = store.get();
  useLayoutEffect(() => {
    const again = (): void => show((n) => n + 1);
    if (store.get() !== value) again(); // it was set after it was shown, and before this listened
    return store.subscribe(again);
  }, [store]);
  return value;
}

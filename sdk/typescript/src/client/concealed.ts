/** The method that Node.js calls to show an object in a log. */
const inspect = Symbol.for("nodejs.util.inspect.custom");

/** Returns an object of which logs show a part only. JSON has all of it. */
export function concealInLogs<T extends object>(object: T, shown: Partial<T>): T {
  return Object.defineProperty(object, inspect, { value: () => shown });
}

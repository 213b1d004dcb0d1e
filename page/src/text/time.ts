// Times and durations in words.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Reads a google.protobuf.Timestamp; NaN when there is none. */
export function readTime(stamp: string | undefined): number {
  return stamp === undefined ? NaN : Date.parse(stamp);
}

/** Reads a google.protobuf.Duration like "1.5s" in milliseconds; NaN when there is none. */
export function readDuration(text: string | undefined): number {
  return text === undefined ? NaN : parseFloat(text) * second;
}

/** Says how long something is in at most two units: "2 h 5 m". */
export function formatSpan(ms: number): string {
  ms = Math.abs(ms);
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(1)} s`;
  if (ms < minute) return `${Math.round(ms / second)} s`;
  if (ms < hour) return `${Math.round(ms / minute)} m`;
  const [large, small, name, rest] = ms < day ? [hour, minute, "h", "m"] : [day, hour, "d", "h"];
  const whole = Math.floor(ms / large);
  const more = Math.floor((ms % large) / small);
  return more > 0 ? `${whole} ${name} ${more} ${rest}` : `${whole} ${name}`;
}

// Made once: to make one takes longer than to format with it.
const formatOf = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => new Intl.DateTimeFormat(undefined, options);
const clock = formatOf({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayAndMonth = { day: "numeric", month: "short" } as const;
const [thisYear, otherYear] = [formatOf(dayAndMonth), formatOf({ ...dayAndMonth, year: "numeric" })];
const exact = formatOf({ dateStyle: "medium", timeStyle: "long" });

/** Says when something was: the time of today, and else the date too. */
export function formatMoment(at: number, now: number): string {
  const time = clock.format(at);
  const [then, today] = [new Date(at), new Date(now)];
  if (then.toDateString() === today.toDateString()) return time;
  return `${(then.getFullYear() === today.getFullYear() ? thisYear : otherYear).format(at)}, ${time}`;
}

/** Says a time to the second, with its zone: for tooltips. */
export function formatExact(at: number): string {
  return Number.isNaN(at) ? "" : exact.format(at);
}

export function formatCount(n: number): string {
  return n.toLocaleString("en");
}

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

/** Says when something was: the time of today, and else the date too. */
export function formatMoment(at: number, now: number): string {
  const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
  if (new Date(at).toDateString() === new Date(now).toDateString()) return time;
  const date = new Intl.DateTimeFormat(undefined, {
    day: "numeric",
    month: "short",
    ...(new Date(at).getFullYear() === new Date(now).getFullYear() ? {} : { year: "numeric" }),
  }).format(at);
  return `${date}, ${time}`;
}

/** Says a time to the second, with its zone: for tooltips. */
export function formatExact(at: number): string {
  return Number.isNaN(at) ? "" : new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" }).format(at);
}

export function formatCount(n: number): string {
  return n.toLocaleString("en");
}

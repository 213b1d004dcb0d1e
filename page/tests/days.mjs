// A day of questions, as a server that has run for long counts it.

const hours = 24;
const asked = [2, 1, 1, 0, 1, 3, 8, 14, 28, 36, 31, 24, 22, 30, 33, 29, 25, 17, 11, 7, 5, 4, 3, 2];
const answered = [2, 2, 1, 1, 0, 2, 6, 11, 25, 37, 30, 22, 24, 29, 31, 30, 27, 20, 12, 8, 5, 4, 3, 1];

/** Returns the answer of GetInterruptStatistics with the counts of a whole day in it. */
export function withWholeDay(statistics, groups) {
  const end = Date.parse(statistics.beginTime) + hours * 3600e3;
  const series = (part, { lateOf = 0, ...rest }) => {
    const intervals = asked.map((n, i) => ({ asked: String(Math.round(n * part)), answered: String(Math.round(answered[i] * part)) }));
    const sum = (name) => intervals.reduce((all, c) => all + Number(c[name]), 0);
    const total = { asked: String(sum("asked")), answered: String(sum("answered")), answeredLate: String(Math.round(sum("answered") * lateOf)), ...rest.total };
    return { ...rest, total, intervals };
  };
  return {
    ...statistics,
    countsSince: new Date(end - 9 * 24 * 3600e3).toISOString(),
    all: series(1, { lateOf: 0.05, medianWait: "660s", p95Wait: "7680s", total: { defaulted: "7", expired: "1" } }),
    groups: Object.entries(groups).map(([group, about]) => ({ group, series: series(about.part, about) })),
  };
}

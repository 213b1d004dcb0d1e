/** What became of questions: whether people keep up, and how the questions of a node were answered. */
import type { Duration } from "@bufbuild/protobuf/wkt";
import type {
  AnswerStatistics as WireAnswers,
  InterruptStatistics_Counts as WireCounts,
  InterruptStatistics_Series as WireSeries,
  InterruptStatistics as WireStatistics,
} from "../_gen/graphd/v1/interrupt_service_pb.js";
import { fromPayload } from "../codec/index.js";
import { readMilliseconds } from "./question.js";
import { readTime } from "./run.js";

/** Numbers of questions. One counts when it is asked, and once more when it ends. */
export type QuestionCounts = {
  asked: bigint;
  /** By people, the dismissed ones among them. */
  answered: bigint;
  /** Those of `answered` that came after the first step, or the expiry, was due. */
  answeredLate: bigint;
  /** The default counts, because no answer came in time. */
  defaulted: bigint;
  /** No answer came in time, and there was no default. */
  expired: bigint;
  /** The run was cancelled, or the question became void. */
  withdrawn: bigint;
};

/** What became of some questions. */
export type QuestionSeries = {
  total: QuestionCounts;
  /** Milliseconds until an answer, as exact as the buckets of the server; left out without an answer. */
  medianWait: number | undefined;
  p95Wait: number | undefined;
  /** One after the other, from `beginsAt` on. */
  intervals: QuestionCounts[];
};

/** What became of questions in the last 24 hours, as far as the server that answered did it. */
export type QuestionStatistics = {
  /** When that server began to count. */
  countsSince: Date | undefined;
  beginsAt: Date | undefined;
  /** Milliseconds. */
  interval: number;
  all: QuestionSeries;
  /** By group; the empty name has the questions of no group. */
  groups: Record<string, QuestionSeries>;
  /** Groups beyond the limit of the server. */
  others: QuestionSeries | undefined;
  /** Questions are missing, because the server counts no more graphs, groups or tenants. */
  isPartial: boolean;
};

/** How the questions of a node were answered, as far as the server that answered did it. */
export type AnswerStatistics = {
  countsSince: Date | undefined;
  answered: bigint;
  dismissed: bigint;
  defaulted: bigint;
  expired: bigint;
  /** The most frequent first. */
  decisions: { decision: unknown; count: bigint }[];
  medianWait: number | undefined;
  p95Wait: number | undefined;
};

export function readStatistics(found: WireStatistics): QuestionStatistics {
  return {
    countsSince: readTime(found.countsSince),
    beginsAt: readTime(found.beginTime),
    interval: readMilliseconds(found.interval),
    all: readSeries(found.all),
    groups: Object.fromEntries(found.groups.map(({ group, series }) => [group, readSeries(series)])),
    others: found.others === undefined ? undefined : readSeries(found.others),
    isPartial: found.partial,
  };
}

export function readAnswerStatistics(found: WireAnswers): AnswerStatistics {
  const { answered, dismissed, defaulted, expired } = found;
  return {
    countsSince: readTime(found.countsSince),
    answered,
    dismissed,
    defaulted,
    expired,
    decisions: found.decisions.map(({ value, count }) => ({ decision: fromPayload(value), count })),
    medianWait: readWait(found.medianWait),
    p95Wait: readWait(found.p95Wait),
  };
}

function readSeries(found: WireSeries | undefined): QuestionSeries {
  return {
    total: readCounts(found?.total),
    medianWait: readWait(found?.medianWait),
    p95Wait: readWait(found?.p95Wait),
    intervals: (found?.intervals ?? []).map(readCounts),
  };
}

function readCounts(found: WireCounts | undefined): QuestionCounts {
  return {
    asked: found?.asked ?? 0n,
    answered: found?.answered ?? 0n,
    answeredLate: found?.answeredLate ?? 0n,
    defaulted: found?.defaulted ?? 0n,
    expired: found?.expired ?? 0n,
    withdrawn: found?.withdrawn ?? 0n,
  };
}

function readWait(wait: Duration | undefined): number | undefined {
  return wait === undefined ? undefined : readMilliseconds(wait);
}

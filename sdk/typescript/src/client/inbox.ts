import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import { TrailKind, type TrailEntry as WireTrailEntry } from "../_gen/graphd/v1/interrupt_pb.js";
import {
  CountInterruptsResponse_Precision,
  InterruptService,
} from "../_gen/graphd/v1/interrupt_service_pb.js";
import { type Caller, callOnce, callRepeatedly, createId } from "../calls/index.js";
import { toPayload } from "../codec/index.js";
import { InvalidArgumentError } from "../errors/index.js";
import { wireThread } from "../names/index.js";
import { type QuestionChange, type WatchOptions, watchQuestions } from "./inbox_watch.js";
import { listPages } from "./pages.js";
import { type Question, readQuestion } from "./question.js";
import { buildQuestionFilter, type QuestionFilter } from "./question_filter.js";
import { type Run, readRun, readTime } from "./run.js";

const calls = InterruptService.method;
const PAGE = 100;

/** What happened to a question. */
export type TrailEntry = { kind: string; actor: string; note: string; time: Date | undefined };

export type QuestionCount = { count: bigint; precision: "exact" | "at_most" | "at_least" };

export type ListOptions = QuestionFilter & {
  /** `created`, oldest first, or `due`, the next due first. */
  orderBy?: "created" | "due";
};

type Named = Pick<Question, "id" | "threadId">;

/** The questions of all threads of a server, and answers to them. */
export class Inbox {
  constructor(private readonly caller: Caller) {}

  /** Lists the questions that fit all that is given, oldest first. */
  list({ orderBy, state = "open", ...filter }: ListOptions = {}): AsyncGenerator<Question, void, undefined> {
    const order = orderBy === undefined ? "" : orderBy === "due" ? "due_time" : "create_time";
    const request = { filter: buildQuestionFilter({ ...filter, state }), orderBy: order, pageSize: PAGE };
    return listPages(async (pageToken) => {
      const page = await callRepeatedly(this.caller, calls.listInterrupts, { ...request, pageToken });
      return { items: page.interrupts.map(readQuestion), nextPageToken: page.nextPageToken };
    });
  }

  /** Yields the open questions, and then each that is new or changes, until the signal is aborted. */
  watch(
    filter: Omit<QuestionFilter, "claimedBy" | "dueBefore"> = {},
    options: WatchOptions = {},
  ): AsyncGenerator<QuestionChange, void, undefined> {
    return watchQuestions(this.caller, buildQuestionFilter(filter), options);
  }

  /** Counts the open questions that fit one condition, all of them without any. */
  async count(filter: QuestionFilter = {}): Promise<QuestionCount> {
    const request = { filters: [buildQuestionFilter(filter)] };
    const [found] = (await callRepeatedly(this.caller, calls.countInterrupts, request)).counts;
    const precision = CountInterruptsResponse_Precision[found?.precision ?? 0] ?? "";
    return { count: found?.count ?? 0n, precision: precision.toLowerCase() as QuestionCount["precision"] };
  }

  async get(threadId: string, id: string): Promise<Question> {
    return readQuestion(await callRepeatedly(this.caller, calls.getInterrupt, nameOf({ threadId, id })));
  }

  /**
   * Answers a question as it was read, and returns the run that goes on. Throws `ConflictError` when the question
   * shows something else by now, and `InvalidResumeError` when the answer does not fit its schema.
   */
  async answer(question: Question, value: unknown, options: { note?: string } = {}): Promise<Run> {
    return await this.respond(question, { case: "value", value: toPayload(value) }, options.note);
  }

  /** Says that a question gets no answer: its node is told, as `InterruptDismissed`. */
  async dismiss(question: Question, reason = ""): Promise<Run> {
    return await this.respond(question, { case: "dismissal", value: { reason } }, "");
  }

  /** Claims an open question: others see that the caller looks after it, for 15 minutes or so many milliseconds. */
  async claim(question: Named, options: { duration?: number } = {}): Promise<Question> {
    const { duration } = options;
    const time = duration === undefined ? {} : { duration: durationFromMs(duration) };
    return readQuestion(await callOnce(this.caller, calls.claimInterrupt, { ...nameOf(question), ...time }));
  }

  /** Gives up the caller's claim. */
  async release(question: Named, note = ""): Promise<Question> {
    return readQuestion(await callOnce(this.caller, calls.releaseInterrupt, { ...nameOf(question), note }));
  }

  /** Hands the caller's part in an open question to another user. */
  async delegate(question: Named, to: string, note = ""): Promise<Question> {
    return readQuestion(
      await callOnce(this.caller, calls.delegateInterrupt, { ...nameOf(question), to, note }),
    );
  }

  /** Takes the caller's answer back before it takes effect, or the caller's vote. */
  async retract(question: Named, note = ""): Promise<Question> {
    return readQuestion(
      await callRepeatedly(this.caller, calls.retractResponse, { ...nameOf(question), note }),
    );
  }

  /** Changes who should answer an open question as it was read, and when it expires; `null` is never. */
  async update(
    question: Question,
    changes: { assignees?: string[]; expiresAt?: Date | null },
  ): Promise<Question> {
    const { assignees, expiresAt } = changes;
    const paths = [
      ...(assignees === undefined ? [] : ["assignees"]),
      ...(expiresAt === undefined ? [] : ["expire_time"]),
    ];
    if (paths.length === 0) throw new InvalidArgumentError("nothing to change: want assignees or expiresAt");
    const expireTime = expiresAt ? { expireTime: timestampFromDate(expiresAt) } : {};
    const interrupt = { ...nameOf(question), etag: question.etag, assignees: assignees ?? [], ...expireTime };
    return readQuestion(
      await callOnce(this.caller, calls.updateInterrupt, { interrupt, updateMask: { paths } }),
    );
  }

  /** Adds a comment to the trail of an open question. It answers nothing. */
  async comment(question: Named, text: string): Promise<TrailEntry> {
    const request = { ...nameOf(question), text, requestId: createId() };
    return readTrailEntry(await callRepeatedly(this.caller, calls.commentInterrupt, request));
  }

  /** Lists what happened to a question, oldest first. */
  trail(question: Named): AsyncGenerator<TrailEntry, void, undefined> {
    return listPages(async (pageToken) => {
      const request = { ...nameOf(question), pageSize: PAGE, pageToken };
      const page = await callRepeatedly(this.caller, calls.listTrail, request);
      return { items: page.entries.map(readTrailEntry), nextPageToken: page.nextPageToken };
    });
  }

  private async respond(question: Question, outcome: Outcome, note = ""): Promise<Run> {
    const response = { interruptId: question.id, outcome, seen: question.seen, note };
    const resume = { threadId: wireThread(question.threadId), responses: [response] };
    const request = { resume, requestId: createId() };
    return readRun(await callRepeatedly(this.caller, GraphService.method.resumeRun, request));
  }
}

type Outcome =
  | { case: "value"; value: ReturnType<typeof toPayload> }
  | { case: "dismissal"; value: { reason: string } };

function nameOf({ threadId, id }: Named) {
  return { threadId: wireThread(threadId), interruptId: id };
}

function readTrailEntry(entry: WireTrailEntry): TrailEntry {
  const { kind, principal: actor, note, time } = entry;
  return { kind: (TrailKind[kind] ?? "").toLowerCase(), actor, note, time: readTime(time) };
}

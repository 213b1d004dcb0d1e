import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { GraphService } from "../_gen/graphd/v1/graph_service_pb.js";
import { TrailKind, type TrailEntry as WireTrailEntry } from "../_gen/graphd/v1/interrupt_pb.js";
import {
  CountInterruptsResponse_Precision,
  InterruptService,
} from "../_gen/graphd/v1/interrupt_service_pb.js";
import { type Caller, callOnce, callRepeatedly, createId } from "../calls/index.js";
import { fromPayload, toPayload } from "../codec/index.js";
import { InvalidArgumentError } from "../errors/index.js";
import { wireName, wireThread } from "../names/index.js";
import { type AnswerOutcome, answerQuestions, type BulkAnswerOptions } from "./bulk_answer.js";
import { concealInLogs } from "./concealed.js";
import { type QuestionChange, type WatchOptions, watchQuestions } from "./inbox_watch.js";
import { listPages } from "./pages.js";
import { type Question, readMilliseconds, readQuestion } from "./question.js";
import { buildQuestionFilter, type QuestionFilter } from "./question_filter.js";
import {
  type AnswerStatistics,
  type QuestionStatistics,
  readAnswerStatistics,
  readStatistics,
} from "./question_statistics.js";
import { type Run, readRun, readTime } from "./run.js";

const calls = InterruptService.method;
const PAGE = 100;

/** What happened to a question. */
export type TrailEntry = { kind: string; actor: string; note: string; time: Date | undefined };

export type QuestionCount = { count: bigint; precision: "exact" | "at_most" | "at_least" };

/** What an answer would do. */
export type AnswerCheck = {
  /** It decides the question. Without it, it is a vote, or nothing new. */
  decides: boolean;
  /** The same answer of the caller is stored already: nothing would change. */
  repeated: boolean;
  /** How many more votes like it would decide. */
  missingVotes: number;
  /** Milliseconds that it could be taken back. */
  undo: number;
};

/** A question with its secret parts, which Node.js does not show in logs. */
export type Revealed = {
  value: unknown;
  /** The default answer; left out without one. */
  default: unknown;
  /** The answer, without the secret parts for a caller who may not see those of the answer. */
  response: unknown;
  /** The entry in the trail that says who has seen what. */
  entry: TrailEntry | undefined;
};

/** A link, which Node.js does not show in logs. A holder of it can answer as its person: send it to that person only. */
export type Link = {
  url: string;
  /** The path of the URL, for a server that is reached by another name. */
  path: string;
  expiresAt: Date | undefined;
};

export type LinkOptions = {
  /** Who answers by the link; the caller when left out. Another person needs the right link-others. */
  principal?: string;
  /** Groups of that person. */
  groups?: string[];
  /** Milliseconds that it is valid, 3 days when left out. */
  valid?: number;
  /** It ends with the next change of the question. */
  bound?: boolean;
};

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
    const [count] = await this.countEach([filter]);
    return count ?? { count: 0n, precision: "exact" };
  }

  /** Counts the open questions of several filters at once, 32 at most, like `[{}, { mine: true }]`. */
  async countEach(filters: QuestionFilter[]): Promise<QuestionCount[]> {
    const request = { filters: filters.map(buildQuestionFilter) };
    const { counts } = await callRepeatedly(this.caller, calls.countInterrupts, request);
    return counts.map(({ count, precision }) => {
      const name = (CountInterruptsResponse_Precision[precision] ?? "").toLowerCase();
      return { count, precision: name as QuestionCount["precision"] };
    });
  }

  /**
   * Reads what became of questions in the last 24 hours, by intervals of an hour or so many milliseconds: a multiple
   * of 15 minutes that divides a day. The counts are those of the server that answers, since it began to count.
   */
  async statistics(options: { interval?: number } = {}): Promise<QuestionStatistics> {
    const { interval } = options;
    const request = interval === undefined ? {} : { interval: durationFromMs(interval) };
    return readStatistics(await callRepeatedly(this.caller, calls.getInterruptStatistics, request));
  }

  /** Reads how the questions of a node were answered since the server that answers began to count. */
  async answerStatistics(graph: string, node: string): Promise<AnswerStatistics> {
    const request = { graph, node: wireName(node) };
    return readAnswerStatistics(await callRepeatedly(this.caller, calls.getAnswerStatistics, request));
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

  /** What an answer would do: it is checked as by `answer`, with the same errors, and not stored. */
  async check(question: Question, value: unknown): Promise<AnswerCheck> {
    const outcome = { case: "value", value: toPayload(value) } as const;
    const responses = [{ interruptId: question.id, outcome, seen: question.seen }];
    const request = { threadId: wireThread(question.threadId), responses };
    const [found] = (await callRepeatedly(this.caller, calls.checkResponses, request)).outcomes;
    const { decides = false, repeated = false, missingVotes = 0 } = found ?? {};
    return { decides, repeated, missingVotes, undo: readMilliseconds(found?.undo) };
  }

  /**
   * Gives one answer to many questions, as they were read, and tells what came of each. One that can't be answered is
   * skipped, with the reason. The call goes on by itself after a lost connection. A program that may end meanwhile
   * gives a `requestId`: with the same one it goes on, and answers none twice. A `GraphdError` that ends the call has
   * the `outcomes` until then, and the `requestId` to go on with.
   */
  async answerMany(
    questions: readonly Question[],
    value: unknown,
    options: BulkAnswerOptions = {},
  ): Promise<AnswerOutcome[]> {
    return await answerQuestions(this.caller, questions, value, options);
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

  /**
   * Shows the secret parts of a question, and records in its trail who has seen which. `pointers` names some of
   * `question.secret`; left out, all.
   */
  async reveal(
    question: Named,
    { pointers = [], note = "" }: { pointers?: string[]; note?: string } = {},
  ): Promise<Revealed> {
    const request = { ...nameOf(question), pointers, note };
    const found = await callOnce(this.caller, calls.revealInterrupt, request);
    const entry = found.entry && readTrailEntry(found.entry);
    return concealInLogs(
      {
        value: fromPayload(found.value),
        default: fromPayload(found.defaultResponse),
        response: fromPayload(found.response),
        entry,
      },
      { entry },
    );
  }

  /** Makes a link by which one person answers an open question in a browser, without other credentials. */
  async makeLink(question: Named, { valid, ...options }: LinkOptions = {}): Promise<Link> {
    const time = valid === undefined ? {} : { valid: durationFromMs(valid) };
    const request = { ...nameOf(question), ...options, ...time };
    const { url, path, expireTime } = await callRepeatedly(this.caller, calls.makeLink, request);
    const expiresAt = readTime(expireTime);
    return concealInLogs({ url, path, expiresAt }, { expiresAt });
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

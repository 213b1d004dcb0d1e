/** One answer to many questions. */
import { InterruptService } from "../_gen/graphd/v1/interrupt_service_pb.js";
import { Backoff, type Caller, createId, pauseAfter, sleep } from "../calls/index.js";
import { toPayload } from "../codec/index.js";
import { type GraphdError, InvalidArgumentError, isGraphdError } from "../errors/index.js";
import { publicThread, wireThread } from "../names/index.js";
import type { Question } from "./question.js";

/** So that a call takes its time for some. */
const PER_CALL = 500;

/** What came of one question of `inbox.answerMany`. */
export type AnswerOutcome = {
  threadId: string;
  id: string;
  /** The answer is stored; of a question that several decide it is a vote, and may not decide. */
  stored: boolean;
  /** Why it is not, like INTERRUPT_ALREADY_RESOLVED; empty when it is. */
  reason: string;
  message: string;
};

export type BulkAnswerOptions = {
  note?: string;
  /** With the same one the call goes on, and answers none twice. */
  requestId?: string;
  signal?: AbortSignal;
};

/** A `GraphdError` that ended a bulk answer. */
export type BulkAnswerError = GraphdError & {
  /** What came of the questions until then. */
  outcomes: AnswerOutcome[];
  /** The id to go on with. */
  requestId: string;
};

/** Gives one answer to many questions, as they were read, and tells what came of each. */
export async function answerQuestions(
  caller: Caller,
  questions: readonly Question[],
  value: unknown,
  { note = "", requestId = createId(), signal }: BulkAnswerOptions = {},
): Promise<AnswerOutcome[]> {
  if (questions.length === 0) throw new InvalidArgumentError("there are 0 questions: want at least 1");
  const options = signal === undefined ? {} : { signal };
  const answer = { outcome: { case: "value" as const, value: toPayload(value) }, note, requestId };
  const outcomes: AnswerOutcome[] = [];
  try {
    for (let at = 0; at < questions.length; at += PER_CALL) {
      await answerPart(caller, questions.slice(at, at + PER_CALL), answer, outcomes, options);
    }
  } catch (error) {
    if (isGraphdError(error)) Object.assign(error, { outcomes, requestId });
    throw error;
  }
  return outcomes;
}

type Answer = {
  outcome: { case: "value"; value: ReturnType<typeof toPayload> };
  note: string;
  requestId: string;
};

/** Answers the questions of one call. Repeated, it asks for those without an outcome alone. */
async function answerPart(
  caller: Caller,
  questions: readonly Question[],
  answer: Answer,
  outcomes: AnswerOutcome[],
  options: { signal?: AbortSignal },
): Promise<void> {
  const known = new Set<string>();
  const findLeft = () => questions.filter(({ threadId, id }) => !known.has(nameOf(threadId, id)));
  const backoff = new Backoff();
  for (;;) {
    try {
      const targets = findLeft().map(({ threadId, id, seen }) => {
        return { threadId: wireThread(threadId), interruptId: id, seen };
      });
      const request = { ...answer, which: { case: "targets" as const, value: { targets } } };
      const stream = caller.serverStream(InterruptService.method.answerInterrupts, request, options);
      for await (const { threadId, interruptId: id, stored, reason, message } of stream) {
        backoff.reset();
        known.add(nameOf(publicThread(threadId), id));
        outcomes.push({ threadId: publicThread(threadId), id, stored, reason, message });
      }
      return;
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      if (findLeft().length === 0) return; // the end of the stream is lost alone
      await sleep(pauseAfter(caller, error, backoff, options), options.signal);
    }
  }
}

function nameOf(threadId: string, id: string): string {
  return JSON.stringify([threadId, id]);
}

/** Follows the questions of all threads, over broken connections and restarts of servers. */
import { type InterruptChange, InterruptService } from "../_gen/graphd/v1/interrupt_service_pb.js";
import { Backoff, type Caller, type CallOptions, pauseAfter, sleep } from "../calls/index.js";
import { GraphdError, isGraphdError } from "../errors/index.js";
import { type Question, readQuestion } from "./question.js";

/** Changes that a server sends in one message. */
const MOST_CHANGES = 64;

/** A question that is new or has changed. */
export type QuestionChange = {
  question: Question;
  /** It was open when the watch began. */
  isInitial: boolean;
  /** The watch is not about it any more: it is assigned to others, or has a state that was not asked for. */
  isGone: boolean;
  /** Where to go on after it; empty while initial questions come. */
  token: string;
};

export type WatchOptions = CallOptions & {
  /** The token of a change: the watch goes on after it. */
  after?: string;
  /** Leaves out the questions that are open. */
  startNow?: boolean;
};

/** Yields the open questions, and then each that is new or changes. It ends with its signal alone. */
export async function* watchQuestions(
  caller: Caller,
  filter: string,
  options: WatchOptions = {},
): AsyncGenerator<QuestionChange, void, undefined> {
  const watch = new QuestionWatch(filter, options);
  const backoff = new Backoff();
  for (;;) {
    let problem = new GraphdError("the server has ended the watch", {
      reason: "SERVER_DRAINING",
      code: "UNAVAILABLE",
    });
    try {
      const stream = caller.serverStream(
        InterruptService.method.watchInterrupts,
        watch.nextRequest(),
        options,
      );
      for await (const message of stream) {
        backoff.reset();
        yield* watch.record(message);
      }
    } catch (error) {
      if (!isGraphdError(error)) throw error;
      problem = error;
    }
    await sleep(pauseAfter(caller, problem, backoff, options), options.signal);
  }
}

class QuestionWatch {
  private token: string;
  private startNow: boolean;
  private initial: InterruptChange[] = [];

  constructor(
    private readonly filter: string,
    { after = "", startNow = false }: WatchOptions,
  ) {
    this.token = after;
    this.startNow = startNow && after === "";
  }

  nextRequest() {
    this.initial = [];
    const { filter, token: resumeToken, startNow } = this;
    return { filter, resumeToken, startNow, maxChanges: MOST_CHANGES };
  }

  /**
   * Notes how far the watch has come, and returns what is to be shown. The initial questions are shown when all of
   * them are there: a stream that breaks among them begins anew.
   */
  record(message: InterruptChange): QuestionChange[] {
    const changes =
      message.changes.length > 0 ? message.changes : message.interrupt === undefined ? [] : [message];
    if (message.resumeToken === "") {
      this.initial.push(...changes);
      return [];
    }
    const before = this.token;
    this.token = message.resumeToken;
    this.startNow = false;
    const last = changes.at(-1);
    return [
      ...this.initial.splice(0).flatMap((change) => readChange(change, "", true)),
      ...changes.flatMap((change) => readChange(change, change === last ? this.token : before, false)),
    ];
  }
}

function readChange(
  { interrupt, gone }: InterruptChange,
  token: string,
  isInitial: boolean,
): QuestionChange[] {
  if (interrupt === undefined) return [];
  return [{ question: readQuestion(interrupt), isInitial, isGone: gone, token }];
}

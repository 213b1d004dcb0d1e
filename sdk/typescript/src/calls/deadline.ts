import { CallTimeoutError, type GraphdError, InvalidArgumentError } from "../errors/index.js";

/** Milliseconds between the timers of a server and of its client. */
const SLACK = 500;

/** When a call must have its answer. */
export class Deadline {
  /** The time of `Date.now` at which it is too late. */
  readonly end: number;

  private constructor(private readonly timeout: number) {
    this.end = Date.now() + timeout;
  }

  /** The deadline of a call that may take so many milliseconds; none for `undefined`. */
  static after(timeout: number | undefined): Deadline | undefined {
    if (timeout === undefined) return undefined;
    if (!(timeout > 0)) {
      const problem = `timeout is ${timeout}: want milliseconds above 0, or nothing for no limit`;
      throw new InvalidArgumentError(problem, { violations: { timeout: problem } });
    }
    return new Deadline(timeout);
  }

  /** Throws when a problem is that the time is over. */
  checkProblem(problem: GraphdError): void {
    if (problem.serverReason !== "" && problem.serverReason !== "DEADLINE_EXCEEDED") return;
    // The server ends a call at its deadline, too; that may arrive before the own timer has run out.
    const isReset = problem.code === "CANCELLED" && Date.now() > this.end - SLACK;
    if (problem.code === "DEADLINE_EXCEEDED" || isReset) throw this.expired(problem);
  }

  /** Throws when there is no time for a pause of so many milliseconds after the problem. */
  checkPause(pause: number, problem: GraphdError | undefined): void {
    if (Date.now() + pause >= this.end) throw this.expired(problem);
  }

  private expired(cause: GraphdError | undefined): CallTimeoutError {
    return new CallTimeoutError(`no answer within ${this.timeout} ms`, { code: "DEADLINE_EXCEEDED", cause });
  }
}

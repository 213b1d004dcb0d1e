import type { ResumeRequest, StreamRequest } from "../_gen/graphd/v1/graph_service_pb.js";
import {
  ConcurrencyPolicy,
  OpenInterruptPolicy,
  type ResumeSpec,
  type RunSpec,
} from "../_gen/graphd/v1/run_pb.js";
import { EmptyInputError, type GraphdError, NothingToResumeError } from "../errors/index.js";
import type { EventRequest } from "./event_stream.js";
import type { NamedVersion } from "./named_version.js";

/** What a call does about refusals of its request: some requests can be changed so that they are taken. */
export class RefusedRequest {
  private first: GraphdError | undefined;
  /** The call goes on without a right that its caller has not got. */
  private denied: GraphdError | undefined;

  /** A node that joined its own run would wait for itself. */
  constructor(
    private readonly ownRunId?: string,
    private readonly named?: NamedVersion,
  ) {}

  /** The request of another attempt. Throws the error when there is none. */
  async recover(request: EventRequest, error: GraphdError): Promise<EventRequest> {
    if ("watch" in request) throw error;
    const isOwn = this.ownRunId !== undefined && error.metadata.activeRunId === this.ownRunId;
    if ("start" in request && !isOwn && joinsActiveRun(request.start.run, error)) {
      await this.named?.check(error);
      return joinRun(request.start, error);
    }
    if (this.first !== undefined) throw this.first;
    // Only here the right is wanted: the thread has open questions.
    if (this.denied !== undefined && error.serverReason === "THREAD_INTERRUPTED") throw this.denied;
    if (goesWithoutRight(request, error)) {
      this.denied = error;
    } else {
      if ("resume" in request) this.recoverResume(request.resume, error);
      else await this.recoverStart(request.start, error);
      this.first = error;
    }
    // Another request: the id of the refused one stands for that.
    const changed = "resume" in request ? request.resume : request.start;
    changed.requestId += ".2";
    return request;
  }

  private recoverResume({ resume }: ResumeRequest, error: GraphdError): void {
    if (resume !== undefined && "breakpointIds" in error.metadata) {
      // A breakpoint is no question: LangGraph goes on and drops the answer.
      delete resume.single;
      resume.responses = [];
    } else if (error.serverReason === "THREAD_NOT_FOUND") {
      throw new NothingToResumeError("the thread has never run, so nothing waits for an answer", {
        reason: error.serverReason,
        code: error.code,
        metadata: error.metadata,
      });
    } else throw error;
  }

  private async recoverStart({ run }: StreamRequest, error: GraphdError): Promise<void> {
    if (run !== undefined && this.named !== undefined && leavesQuestionsUndecided(run, error)) {
      await this.named.check(error);
      run.openInterrupts = OpenInterruptPolicy.DISCARD;
    } else if (run?.start.case === undefined && "input" in error.violations) {
      const { serverReason: reason, code, violations } = error;
      throw new EmptyInputError("Received no input for __start__", { reason, code, violations });
    } else throw error;
  }
}

/**
 * Whether a call wants of its thread what the active run does already: to go on with what is left. A program that was
 * killed and starts again makes such a call while its run still waits for a worker.
 */
function joinsActiveRun(run: RunSpec | undefined, error: GraphdError): run is RunSpec {
  if (run === undefined || error.serverReason !== "THREAD_BUSY" || !error.metadata.activeRunId) return false;
  if (run.concurrency !== ConcurrencyPolicy.UNSPECIFIED) return false;
  const bringsNothing =
    run.start.case === undefined && run.update === undefined && run.gotoTargets.length === 0;
  return bringsNothing && run.interruptBefore.length === 0 && run.interruptAfter.length === 0;
}

/** Whether a run was refused because of open questions of which its call says nothing. */
function leavesQuestionsUndecided(run: RunSpec, error: GraphdError): boolean {
  return (
    error.serverReason === "THREAD_INTERRUPTED" && run.openInterrupts === OpenInterruptPolicy.UNSPECIFIED
  );
}

/** Follows the active run from now on. */
function joinRun({ run, filter }: StreamRequest, error: GraphdError): EventRequest {
  const { activeRunId: runId = "" } = error.metadata;
  const start = { case: "now" as const, value: {} };
  return {
    watch: {
      threadId: run?.threadId ?? "",
      runId,
      follow: true,
      start,
      ...(filter === undefined ? {} : { filter }),
    },
  };
}

/** Whether the request asks no more for a right that its caller has not got. */
function goesWithoutRight(request: Exclude<EventRequest, { watch: unknown }>, error: GraphdError): boolean {
  if ("resume" in request) {
    const { resume } = request.resume;
    if (resume === undefined || givesSettings(resume) || !lacksRight(error, "replace-settings")) return false;
    delete resume.settings;
    return true;
  }
  const { run } = request.start;
  if (run === undefined || !lacksRight(error, "discard-questions")) return false;
  run.openInterrupts = OpenInterruptPolicy.REJECT;
  return true;
}

/** Whether a call has a context, breakpoints or a limit of its own, without which its run would be another one. */
function givesSettings({ settings }: ResumeSpec): boolean {
  if (settings === undefined) return false;
  const { context, interruptBefore, interruptAfter, stepLimit } = settings;
  return context !== undefined || interruptBefore.length > 0 || interruptAfter.length > 0 || stepLimit > 0;
}

function lacksRight(error: GraphdError, right: string): boolean {
  return error.serverReason === "ACCESS_DENIED" && error.metadata.rule === `right: ${right}`;
}

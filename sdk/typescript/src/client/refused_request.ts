import type { ResumeRequest, StreamRequest } from "../_gen/graphd/v1/graph_service_pb.js";
import { OpenInterruptPolicy } from "../_gen/graphd/v1/run_pb.js";
import { EmptyInputError, type GraphdError, NothingToResumeError } from "../errors/index.js";
import type { EventRequest } from "./event_stream.js";

/** What a call does about refusals of its request: some requests can be changed so that they are taken. */
export class RefusedRequest {
  private first: GraphdError | undefined;

  /** Changes the request for another attempt. Throws the error when there is none. */
  recover(request: EventRequest, error: GraphdError): void {
    if (this.first !== undefined) throw this.first;
    if ("resume" in request) this.recoverResume(request.resume, error);
    else if ("start" in request) this.recoverStart(request.start, error);
    else throw error;
    this.first = error;
    // Another request: the id of the refused one stands for that.
    const changed = "resume" in request ? request.resume : request.start;
    changed.requestId += ".2";
  }

  private recoverResume({ resume }: ResumeRequest, error: GraphdError): void {
    if (resume !== undefined && "breakpointIds" in error.metadata) {
      // A breakpoint is no question: LangGraph goes on and drops the answer.
      delete resume.single;
      resume.responses = [];
    } else if (resume !== undefined && lacksRight(error, "replace-settings")) {
      delete resume.settings;
    } else if (error.serverReason === "THREAD_NOT_FOUND") {
      throw new NothingToResumeError("the thread has never run, so nothing waits for an answer", {
        reason: error.serverReason,
        code: error.code,
        metadata: error.metadata,
      });
    } else throw error;
  }

  private recoverStart({ run }: StreamRequest, error: GraphdError): void {
    if (run !== undefined && lacksRight(error, "discard-questions")) {
      run.openInterrupts = OpenInterruptPolicy.REJECT;
    } else if (run?.start.case === undefined && "input" in error.violations) {
      const { serverReason: reason, code, violations } = error;
      throw new EmptyInputError("Received no input for __start__", { reason, code, violations });
    } else throw error;
  }
}

function lacksRight(error: GraphdError, right: string): boolean {
  return error.serverReason === "ACCESS_DENIED" && error.metadata.rule === `right: ${right}`;
}

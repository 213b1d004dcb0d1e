/** What a called graph has failed with, until the call makes the error of it that the node catches. */
import type { Failure } from "../_gen/graphd/v1/payload_pb.js";

export class CalledFailure extends Error {
  override readonly name = "CalledFailure";

  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

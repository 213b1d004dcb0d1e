import type { Event } from "../_gen/graphd/v1/event_pb.js";
import { InterruptService } from "../_gen/graphd/v1/interrupt_service_pb.js";
import type { CheckpointRef } from "../_gen/graphd/v1/payload_pb.js";
import { ThreadService } from "../_gen/graphd/v1/thread_service_pb.js";
import { type Caller, callRepeatedly } from "../calls/index.js";

/**
 * Reads what an event came without, because it is larger than a message may be. Of updates and of emitted values no
 * call has the value. Throws where a question can't be read: it must not be shown without its value.
 */
export async function restoreOmittedValues(caller: Caller, event: Event): Promise<void> {
  const { kind, threadId } = event;
  if (kind.case === "values" || kind.case === "checkpoint") {
    const { checkpoint } = kind.value;
    if (checkpoint !== undefined) kind.value.values = await readValues(caller, threadId, checkpoint);
  } else if (kind.case === "interrupt") {
    const { interrupts } = kind.value;
    kind.value.interrupts = await Promise.all(
      interrupts.map(({ interruptId }) =>
        callRepeatedly(caller, InterruptService.method.getInterrupt, { threadId, interruptId }),
      ),
    );
  }
}

async function readValues(caller: Caller, threadId: string, at: CheckpointRef) {
  const request = { threadId, at };
  return (await callRepeatedly(caller, ThreadService.method.getState, request)).values;
}

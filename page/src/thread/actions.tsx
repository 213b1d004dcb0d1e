// What changes a thread: forks, new runs and cancels. Each says before what it will do.

import { newRequestId } from "../api/connect";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { StateSnapshot, Thread } from "../api/messages";
import { client, noteError } from "../api/session";
import { JsonEntry } from "../form/form";
import { type Json, JsonObject, printJson } from "../json/value";
import { addressOf, navigate } from "../route";
import { Text } from "../text/marks";
import { Dialog } from "../ui/dialog";
import { showToast } from "../ui/toast";

interface Props {
  thread: Thread;
  at: StateSnapshot;
  close: () => void;
  done: () => void;
}

/** Keeps whether a call is under way, and why it failed. */
function useCall(then: () => void): { problem: string; isBusy: boolean; run: (call: () => Promise<void>) => void } {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const run = (call: () => Promise<void>): void => {
    setBusy(true);
    call().then(then, (err: unknown) => {
      noteError(err);
      setProblem(err instanceof Error ? err.message : String(err));
    }).finally(() => setBusy(false));
  };
  return { problem, isBusy, run };
}

/** Makes a thread that goes on from a checkpoint, with another state if wanted. */
export function ForkDialog({ thread, at, close }: Props): ComponentChildren {
  const [name, setName] = useState(`${thread.threadId}-fork`);
  const [change, setChange] = useState<Json | undefined>(undefined);
  const ids = useRef([newRequestId(), newRequestId()]); // a call that is repeated changes nothing more
  const call = useCall(close);
  const fork = (e: Event): void => {
    e.preventDefault();
    call.run(async () => {
      const made = await client.call<Thread>("ThreadService/ForkThread", { sourceThreadId: thread.threadId, at: at.checkpoint, threadId: name, requestId: ids.current[0] });
      if (change !== undefined) {
        const request = { threadId: made.threadId, values: { json: printJson(change) }, supersedeInterrupts: true, requestId: ids.current[1] };
        await client.call("ThreadService/UpdateState", request);
      }
      showToast({ title: `Made ${made.threadId}`, about: change === undefined ? "It has the history up to the checkpoint" : "It has the history up to the checkpoint, and your change" });
      navigate(addressOf("threads", [made.threadId!]));
    });
  };
  return (
    <Dialog title="Fork from here" close={close}>
      <form onSubmit={fork}>
        <p>Makes a new thread with the history up to step {at.step ?? 0}. This thread stays as it is.</p>
        <div class="field">
          <label class="label" for="fork-name">Name of the new thread</label>
          <input id="fork-name" value={name} autoComplete="off" onInput={(e) => setName(e.currentTarget.value)} />
        </div>
        <JsonEntry field={{ kind: "json", title: "Change of the state", about: "Keys to write, as a JSON object; reducers combine them with what is there", initial: undefined }} pointer="/change" value={change} enter={setChange} problems={{}} isRequired={false} />
        <Problem of={call.problem} />
        <button type="submit" class="main" disabled={call.isBusy || name === "" || (change !== undefined && !(change instanceof JsonObject))}>Fork</button>
      </form>
    </Dialog>
  );
}

/** Runs again from a checkpoint. */
export function RunAgainDialog({ thread, at, close, done }: Props): ComponentChildren {
  const requestId = useRef(newRequestId());
  const call = useCall(() => {
    close();
    done();
  });
  const run = (): void =>
    call.run(async () => {
      const spec = { threadId: thread.threadId, replayFrom: at.checkpoint, openInterrupts: "OPEN_INTERRUPT_POLICY_DISCARD" };
      await client.call("GraphService/StartRun", { run: spec, requestId: requestId.current });
      showToast({ title: "A run has started", about: `from step ${at.step ?? 0}` });
    });
  return (
    <Dialog title="Run again from here" close={close}>
      <p>
        The nodes after step {at.step ?? 0} run again: {(at.next ?? []).length > 0 ? <b><Text of={(at.next ?? []).join(", ")} /></b> : "there are none, so nothing happens"}.
        What they do outside of graphd happens again. Questions that are open now are dropped. The history stays, as another branch.
      </p>
      <Problem of={call.problem} />
      <div class="choices"><button type="button" class="main" disabled={call.isBusy} onClick={run}>Run again</button><button type="button" class="ghost" onClick={close}>Leave it</button></div>
    </Dialog>
  );
}

/** Cancels the run that works or waits. */
export function CancelDialog({ thread, close, done }: Props): ComponentChildren {
  const [action, setAction] = useState("ACTION_KEEP");
  const [reason, setReason] = useState("");
  const call = useCall(() => {
    close();
    done();
  });
  const choices = [
    ["ACTION_KEEP", "Keep what it has done", "The state stays as it is now."],
    ["ACTION_ROLLBACK", "Roll back", "The thread is as it was before the run. What the run did outside of graphd stays."],
  ] as const;
  const cancel = (): void =>
    call.run(async () => {
      await client.call("GraphService/CancelRun", { threadId: thread.threadId, runId: thread.runId, action, reason });
      showToast({ title: "The run is being cancelled", about: "Its open questions are dropped" });
    });
  return (
    <Dialog title="Cancel the run" close={close}>
      <fieldset>
        <legend>What becomes of what it has done</legend>
        {choices.map(([value, title, about]) => (
          <label class="choice"><input type="radio" name="action" checked={action === value} onChange={() => setAction(value)} /><span><b>{title}</b><small>{about}</small></span></label>
        ))}
      </fieldset>
      <div class="field">
        <label class="label" for="cancel-reason">Reason<i>optional, for the record</i></label>
        <input id="cancel-reason" value={reason} dir="auto" onInput={(e) => setReason(e.currentTarget.value)} />
      </div>
      <Problem of={call.problem} />
      <div class="choices"><button type="button" class="main no" disabled={call.isBusy} onClick={cancel}>Cancel the run</button><button type="button" class="ghost" onClick={close}>Leave it</button></div>
    </Dialog>
  );
}

function Problem({ of: text }: { of: string }): ComponentChildren {
  return text && <p class="problem" role="alert"><Text of={text} /></p>;
}

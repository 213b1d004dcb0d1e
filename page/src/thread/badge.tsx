// The state of a thread or a run: in a word, with a colour.

import type { ComponentChildren } from "preact";

const words: Record<string, readonly [string, string]> = {
  THREAD_STATE_IDLE: ["at rest", "still"], THREAD_STATE_BUSY: ["works", "runs"], THREAD_STATE_INTERRUPTED: ["waits for people", "waits"], THREAD_STATE_FAILED: ["failed", "failed"],
  RUN_STATE_QUEUED: ["queued", "still"], RUN_STATE_RUNNING: ["works", "runs"], RUN_STATE_INTERRUPTED: ["waits for people", "waits"], RUN_STATE_CANCELLING: ["is being cancelled", "waits"],
  RUN_STATE_SUCCEEDED: ["succeeded", "done"], RUN_STATE_FAILED: ["failed", "failed"], RUN_STATE_CANCELLED: ["cancelled", "still"], RUN_STATE_TIMED_OUT: ["timed out", "failed"], RUN_STATE_SUPERSEDED: ["replaced", "still"],
};

export function RunBadge({ state }: { state: string | undefined }): ComponentChildren {
  const [word, tone] = words[state ?? ""] ?? ["unknown", "still"];
  return <span class={"badge " + tone}><i />{word}</span>;
}

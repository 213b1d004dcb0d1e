// What happened to a question, newest first, and the place for a comment.

import type { ComponentChildren } from "preact";
import type { TrailEntry } from "../api/messages";
import { ownName } from "../api/session";
import { readPayload } from "../json/value";
import { Text } from "../text/marks";
import { nameActor, shortName } from "../text/people";
import { formatExact, formatMoment, readTime } from "../text/time";
import { Avatar, Place } from "../ui/people";
import { describeAnswer } from "./outcome";

export function Trail({ entries, now }: { entries: readonly TrailEntry[]; now: number }): ComponentChildren {
  return (
    <ol class="trail">
      {entries.toReversed().map((e) => (
        <li key={e.number}>
          {e.principal ? <Avatar principal={e.principal} /> : <Place icon={byClock.has(e.kind ?? "") ? "clock" : "graph"} />}
          <div>
            <span>
              <b title={e.principal}>{nameOf(e)}</b> <Text of={describeEntry(e)} />
              {e.principal && e.method && <em> · {describeMethod(e)}</em>}
            </span>
            {e.note && <p dir="auto"><Text of={e.note} /></p>}
          </div>
          <time title={formatExact(readTime(e.time))}>{formatMoment(readTime(e.time), now)}</time>
        </li>
      ))}
    </ol>
  );
}

/** Returns who did it. A server that knows no callers knows only that one of them did. */
function nameOf(e: TrailEntry): string {
  const kind = e.kind ?? "";
  if (e.principal) return nameActor(e.principal);
  if (byClock.has(kind)) return "Timer";
  if (byGraph.has(kind)) return "The graph";
  return ownName() === "" ? "Someone" : "Timer"; // who answers by a default
}

const byGraph = new Set(["TRAIL_KIND_ASKED", "TRAIL_KIND_USED", "TRAIL_KIND_CANCELLED", "TRAIL_KIND_SUPERSEDED", "TRAIL_KIND_COPIED"]);
const byClock = new Set(["TRAIL_KIND_REMINDED", "TRAIL_KIND_ESCALATED", "TRAIL_KIND_EXPIRED"]);

function describeEntry(e: TrailEntry): string {
  const names = [...(e.groups ?? []), ...(e.users ?? []).map(shortName)].join(", ");
  const answer = e.dismissed ? "declined to answer" : e.value ? describeAnswer(readPayload(e.value)).toLowerCase() : "a large answer";
  switch (e.kind) {
    case "TRAIL_KIND_ASKED":
      return "asked" + (e.policy ? ` ${e.policy}` : "");
    case "TRAIL_KIND_CLAIMED":
      return "took it";
    case "TRAIL_KIND_RELEASED":
      return "gave it back";
    case "TRAIL_KIND_CHANGED":
      return describeChange(e);
    case "TRAIL_KIND_COMMENTED":
      return "commented";
    case "TRAIL_KIND_VOTED":
      return `voted: ${answer}`;
    case "TRAIL_KIND_ANSWERED":
      return `answered: ${answer}`;
    case "TRAIL_KIND_USED":
      return "went on with the answer";
    case "TRAIL_KIND_REMINDED":
      return "reminded " + (names || "all who may answer");
    case "TRAIL_KIND_ESCALATED":
      return "asked also " + names + (e.priority ? `, priority ${e.priority}` : "");
    case "TRAIL_KIND_EXPIRED":
      return "ended the wait: no answer came in time";
    case "TRAIL_KIND_CANCELLED":
      return "cancelled the run";
    case "TRAIL_KIND_SUPERSEDED":
      return "no longer needs the answer";
    case "TRAIL_KIND_COPIED":
      return `copied it from ${e.fromThreadId ?? ""}`;
    case "TRAIL_KIND_RETRACTED":
      return "took it back";
    case "TRAIL_KIND_DELEGATED":
      return "handed it to " + names;
    case "TRAIL_KIND_REVEALED":
      return "saw hidden parts: " + (e.fields ?? []).map((f) => f || "all").join(", ");
  }
  return "changed it";
}

function describeChange(e: TrailEntry): string {
  const parts = (e.fields ?? []).map((f) =>
    f === "assignees" ? "assigned " + ((e.assignees ?? []).map(shortName).join(", ") || "no one")
    : f === "expire_time" ? "changed when it expires"
    : f === "claimed_by" ? "ended the claim" : f,
  );
  return parts.join(", ") || "changed it";
}

/** Says by which way an entry came. */
function describeMethod(e: TrailEntry): string {
  if (e.principalHow === "link") return "a link";
  return e.principalHow === "none" || !e.principalHow ? "unverified" : `by ${e.principalHow}`;
}

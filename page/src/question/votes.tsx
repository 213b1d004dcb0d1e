// Who has agreed, by answer, and who is still asked.

import type { ComponentChildren } from "preact";
import type { Interrupt, Vote } from "../api/messages";
import { readPayload } from "../json/value";
import { Text } from "../text/marks";
import { shortName } from "../text/people";
import { formatExact, formatSpan, readTime } from "../text/time";
import { Avatar, Place } from "../ui/people";
import { describeAnswer } from "./outcome";

/** Shows the votes of a question that needs several. */
export function Votes({ question: q, caller, mayAnswer, now }: { question: Interrupt; caller: string; mayAnswer: boolean; now: number }): ComponentChildren {
  const need = q.people?.approvals || 1;
  const votes = q.votes ?? [];
  if (need < 2 && votes.length === 0) return null;
  const agreed = votes.filter((v) => v.agrees).length;
  const rules = [
    (q.people?.vetoes || 1) === 1 ? "one “no” decides" : `${q.people!.vetoes} times “no” decides`,
    q.people?.notRequester && "who asked can’t vote",
    need > 1 && "the answers must be the same",
  ].filter(Boolean);
  const missing = q.state === "INTERRUPT_STATE_OPEN" ? Math.max(0, Math.min(need - agreed, 6)) : 0;
  const isOwnNext = mayAnswer && !votes.some((v) => v.principal === caller);
  return (
    <section class="votes">
      <h2>{agreed} of {need} {need === 1 ? "has" : "have"} agreed <small>{rules.join("; ")}</small></h2>
      <div class="cards">
        {votes.map((v) => <VoteCard vote={v} now={now} />)}
        {Array.from({ length: missing }, (_, i) => (
          <div class="vote open">
            <Place icon="person" size={24} open />
            <div><b>{i === 0 && isOwnNext ? "You?" : "One more"}</b><span><Text of={whoVotes(q)} /></span></div>
          </div>
        ))}
      </div>
    </section>
  );
}

function whoVotes(q: Interrupt): string {
  const names = [...(q.people?.groups ?? []), ...(q.people?.users ?? []).map(shortName)];
  return names.length > 0 ? "of " + names.join(", ") : "";
}

function VoteCard({ vote, now }: { vote: Vote; now: number }): ComponentChildren {
  const at = readTime(vote.time);
  return (
    <div class={"vote " + (vote.agrees ? "yes" : "no")}>
      <Avatar principal={vote.principal ?? ""} size={24} />
      <div>
        <b title={vote.principal}>{shortName(vote.principal ?? "")}</b>
        <span title={formatExact(at)}><Text of={describeAnswer(readPayload(vote.value)).toLowerCase()} /> {formatSpan(now - at)} ago</span>
        {vote.note && <p dir="auto"><Text of={vote.note} /></p>}
      </div>
    </div>
  );
}

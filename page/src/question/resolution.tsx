// What became of a question that is not open any more.

import type { ComponentChildren } from "preact";
import type { Interrupt } from "../api/messages";
import { type Json, JsonObject, readPayload } from "../json/value";
import { useKeys } from "../keys";
import { Text } from "../text/marks";
import { formatExact, formatSpan, readTime } from "../text/time";
import { Banner } from "../ui/banner";
import { Key } from "../ui/key";
import { isAllowed } from "./actions";
import { Facts } from "./facts";
import { describeOutcome, toneOf } from "./outcome";
import { takeBack } from "./take_back";

/** Shows what became of a question that is not open any more, beside the answer that was being entered when another one came. */
export function Resolution({ question: q, now, changed, entered }: { question: Interrupt; now: number; changed: (q: Interrupt) => void; entered: Json | undefined }): ComponentChildren {
  const answer = readPayload(q.response);
  const effective = readTime(q.effectiveTime);
  const mayUndo = effective > now && isAllowed(q, "RETRACT");
  useKeys(mayUndo ? [{ keys: ["u"], about: "undo", run: () => takeBack(q, changed) }] : []);
  return (
    <section class="resolution">
      <Banner icon={q.responder ? "check" : "clock"} tone={answer === undefined ? "mid" : toneOf(answer instanceof JsonObject ? answer.get("decision") : answer)}>
        <b><Text of={describeOutcome(q)} />{entered !== undefined && ". Your answer was not stored"}</b>
        {q.responseTime && <span title={formatExact(readTime(q.responseTime))}> {formatSpan(now - readTime(q.responseTime))} ago</span>}
        {effective > now && <span> · takes effect in {formatSpan(effective - now)}</span>}
        {q.note && <p dir="auto"><Text of={q.note} /></p>}
      </Banner>
      {mayUndo && <button type="button" class="ghost" onClick={() => takeBack(q, changed)}>Undo<Key of="U" /></button>}
      <div class={entered === undefined ? "" : "both"}>
        {answer !== undefined && <div>{entered !== undefined && <h2>The answer</h2>}<Facts value={answer} /></div>}
        {entered !== undefined && <div><h2>Yours, which is not stored</h2><Facts value={entered} /></div>}
      </div>
    </section>
  );
}

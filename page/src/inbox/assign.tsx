// Assigns questions to people and groups, or hands the own part in them to another person.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Interrupt } from "../api/messages";
import { noteError, ownGroups, ownName } from "../api/session";
import { isAllowed } from "../question/actions";
import { Text } from "../text/marks";
import { Dialog } from "../ui/dialog";
import { showToast } from "../ui/toast";
import { assign, delegate } from "./assignment";
import { inParallel, type Failure, Failures } from "./several";

interface Props {
  questions: readonly Interrupt[];
  close: () => void;
  /** Is told of questions that have changed. */
  changed: (q: Interrupt) => void;
  /** Is called when all are assigned. */
  done: () => void;
}

const mostNames = 24;

export function AssignDialog({ questions, close, changed, done }: Props): ComponentChildren {
  const [left, setLeft] = useState(questions); // those that are not assigned yet
  const mayAssign = questions.every((q) => isAllowed(q, "ASSIGN"));
  const known = useMemo(() => listNames(questions, mayAssign), []);
  const [names, setNames] = useState<readonly string[]>(mayAssign && questions.length === 1 ? questions[0]!.assignees ?? [] : []);
  const [other, setOther] = useState("");
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const [progress, setProgress] = useState<number | undefined>(undefined);
  const given = [...new Set([...names, ...other.split(",").map((n) => n.trim()).filter(Boolean)])];
  const toggle = (name: string): void => setNames(!mayAssign ? [name] : names.includes(name) ? names.filter((n) => n !== name) : [...names, name]);
  const send = async (e: Event): Promise<void> => {
    e.preventDefault();
    setProgress(0);
    const failed = await inParallel(left, setProgress, async (q) => changed(await (mayAssign ? assign(q, given) : delegate(q, given[0]!))));
    failed.forEach((f) => noteError(f.error));
    setProgress(undefined);
    setFailures(failed);
    setLeft(failed.map((f) => f.question));
    if (failed.length < left.length) {
      const who = given.join(", ") || "no one";
      showToast({ title: `${mayAssign ? "Assigned to" : "Handed to"} ${who}: ${left.length === 1 ? left[0]!.threadId : `${left.length - failed.length} questions`}`, about: mayAssign ? "Who may answer stays as the graph says" : "You gave your part away" });
    }
    if (failed.length > 0) return;
    done();
    close();
  };
  const what = mayAssign ? "Assign" : "Hand on";
  const title = left.length === 1 ? what : `${what} ${left.length} questions`;
  return (
    <Dialog title={title} close={close}>
      <form class="answer" onSubmit={(e) => void send(e)}>
        <fieldset style={{ display: "flex", flexWrap: "wrap", gap: "6px 14px", border: 0, padding: 0 }}>
          <legend class="sr">Known names</legend>
          {known.map((name) => (
            <label><input type={mayAssign ? "checkbox" : "radio"} name="known" checked={names.includes(name)} onChange={() => toggle(name)} /> <Text of={name} /></label>
          ))}
        </fieldset>
        <div class="field">
          <label class="label" for="assign-other">{mayAssign ? "Other people and groups" : "Another person"}<i>{mayAssign ? "with commas between" : "as the server names them"}</i></label>
          <input id="assign-other" dir="auto" autoComplete="off" value={other} onInput={(e) => { setOther(e.currentTarget.value); if (!mayAssign) setNames([]); }} />
        </div>
        <Failures of={failures} what="not assigned" />
        <button type="submit" class="main" disabled={progress !== undefined || (!mayAssign && given.length !== 1)}>
          {progress === undefined ? `${title} ${given.length > 0 ? "to " + given.join(", ") : mayAssign ? "to no one" : ""}` : `${progress} of ${left.length}…`}
        </button>
      </form>
    </Dialog>
  );
}

/** Lists the names that stand in questions, and those of the caller. The own part is handed to people. */
function listNames(questions: readonly Interrupt[], withGroups: boolean): string[] {
  const names = [ownName()];
  for (const q of questions) {
    const audiences = [q.people, ...(q.steps ?? []).map((s) => s.remind ?? s.escalate)];
    names.push(...(q.assignees ?? []), ...(q.delegations ?? []).map((d) => d.to ?? ""), ...(q.votes ?? []).map((v) => v.principal ?? ""));
    for (const a of audiences) names.push(...(a?.users ?? []), ...(withGroups ? a?.groups ?? [] : []));
  }
  if (withGroups) names.push(...ownGroups());
  return [...new Set(names)].filter(Boolean).slice(0, mostNames);
}

// The state at a checkpoint, and what is different from the one before: what changed stands first.

import type { ComponentChildren } from "preact";
import { equalJson, isList, type Json, JsonObject, printJson } from "../json/value";
import { Text } from "../text/marks";

const longest = 20_000; // characters of a value that are shown at once

export function StateView({ now, before }: { now: JsonObject; before: JsonObject }): ComponentChildren {
  const names = [...new Set([...now.members, ...before.members].map(([name]) => name))];
  const isChanged = (name: string): boolean => !equalJson(now.get(name), before.get(name));
  const ordered = [...names.filter(isChanged), ...names.filter((n) => !isChanged(n))];
  if (ordered.length === 0) return <p class="faint">The state is empty.</p>;
  return (
    <dl class="state">
      {ordered.map((name) => <KeyView key={name} name={name} now={now.get(name)} before={before.get(name)} />)}
    </dl>
  );
}

function KeyView({ name, now, before }: { name: string; now: Json | undefined; before: Json | undefined }): ComponentChildren {
  const change = describeChange(now, before);
  const added = isList(now) && isList(before) && startsWith(now, before) ? before.length : undefined;
  return (
    <div class={change === "" ? "" : change === "new" ? "new" : "changed"}>
      <dt><Text of={name} />{change && <span>{change}</span>}</dt>
      <dd>
        {now === undefined ? <span class="faint">removed</span> : added !== undefined && change !== "" ? (
          <pre tabIndex={0}>
            {added > 0 && <div class="context">{added === 1 ? "1 element as before" : `${added} elements as before`}</div>}
            {(now as readonly Json[]).slice(added).map((v) => <div class="added"><Text of={cut(printJson(v, "  "))} /></div>)}
          </pre>
        ) : (
          <pre tabIndex={0} class={change === "" ? "" : "added"}><Text of={cut(printJson(now, "  "))} /></pre>
        )}
      </dd>
    </div>
  );
}

function describeChange(now: Json | undefined, before: Json | undefined): string {
  if (equalJson(now, before)) return "";
  if (before === undefined) return "new";
  if (now === undefined) return "removed";
  if (isList(now) && isList(before) && startsWith(now, before)) {
    const n = now.length - before.length;
    return n === 1 ? "+1 element" : `+${n} elements`;
  }
  return "changed";
}

function startsWith(list: readonly Json[], start: readonly Json[]): boolean {
  return list.length >= start.length && start.every((v, i) => equalJson(v, list[i]));
}

function cut(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}\n… ${text.length - longest} more characters`;
}

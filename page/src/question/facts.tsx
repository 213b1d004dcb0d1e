// The value of a question: scalars as a table, and what has more in it as a tree.

import type { ComponentChildren } from "preact";
import { toTitle } from "../form/schema";
import { Decimal, isList, type Json, JsonObject, printJson } from "../json/value";
import { Text } from "../text/marks";
import { isSecret } from "./title";

const deepest = 6; // what is nested deeper is shown as JSON
const mostItems = 200;

interface Props {
  value: Json;
  /** Shows the secret part at a pointer; undefined when the caller can’t. */
  reveal?: ((pointer: string) => void) | undefined;
}

export function Facts({ value, reveal }: Props): ComponentChildren {
  if (value instanceof JsonObject && value.members.length > 0 && !isSecret(value)) return <Table object={value} pointer="" depth={0} reveal={reveal} />;
  return <div class="fact-alone"><Value value={value} pointer="" depth={0} reveal={reveal} /></div>;
}

interface Place {
  pointer: string;
  depth: number;
  reveal: Props["reveal"];
}

function Table({ object, pointer, ...place }: Place & { object: JsonObject }): ComponentChildren {
  return (
    <dl class="facts">
      {object.members.slice(0, mostItems).map(([name, v]) => (
        <div class={isSecret(v) ? "secret" : ""}>
          <dt dir="auto"><Text of={toTitle(name)} /></dt>
          <dd dir="auto"><Value value={v} {...place} pointer={`${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`} /></dd>
        </div>
      ))}
      {object.members.length > mostItems && <div><dt>…</dt><dd>{object.members.length - mostItems} more, see JSON</dd></div>}
    </dl>
  );
}

function Value({ value, pointer, depth, reveal }: Place & { value: Json }): ComponentChildren {
  if (isSecret(value)) {
    return reveal ? <button type="button" class="reveal" onClick={() => reveal(pointer)}>hidden · show it (is recorded)</button> : <span class="faint">hidden</span>;
  }
  if (value === null) return <span class="faint">none</span>;
  if (value instanceof Decimal) return <span class="number">{value.text}</span>;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value === "" ? <span class="faint">empty</span> : <span class="text"><Text of={value} /></span>;
  if (depth >= deepest) return <pre tabIndex={0}><Text of={printJson(value, "  ")} /></pre>;
  if (isList(value)) return <Items list={value} pointer={pointer} depth={depth} reveal={reveal} />;
  return value instanceof JsonObject && value.members.length > 0 ? <Table object={value} pointer={pointer} depth={depth + 1} reveal={reveal} /> : <span class="faint">empty</span>;
}

function Items({ list, ...place }: Place & { list: readonly Json[] }): ComponentChildren {
  if (list.length === 0) return <span class="faint">empty</span>;
  if (list.every((v) => typeof v === "string" || v instanceof Decimal) && printJson(list).length < 120) {
    return <Text of={list.map((v) => (v instanceof Decimal ? v.text : (v as string))).join(", ")} />;
  }
  return (
    <ul class="items">
      {list.slice(0, mostItems).map((v, i) => (
        <li><Value value={v} {...place} pointer={`${place.pointer}/${i}`} depth={place.depth + 1} /></li>
      ))}
      {list.length > mostItems && <li class="faint">{list.length - mostItems} more, see JSON</li>}
    </ul>
  );
}

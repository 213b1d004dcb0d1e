// A form for a value: fields for what the schema is known to take, and JSON for the rest.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Decimal, equalJson, isList, type Json, JsonError, JsonObject, parseJson, printJson } from "../json/value";
import { plainText, Text } from "../text/marks";
import { type Field, initialValue, type Member, type Option, shownMembers } from "./schema";

/** Problems by the JSON pointer of the place. */
export type Problems = Readonly<Record<string, string>>;

interface Entry {
  pointer: string;
  value: Json | undefined;
  /** undefined removes the value. */
  enter: (value: Json | undefined) => void;
  problems: Problems;
  isRequired: boolean;
}

/** Shows the fields of a group; skip is the name of a member that is shown elsewhere. */
export function Members({ group, skip, ...e }: Entry & { group: Field & { kind: "group" }; skip?: string | undefined }): ComponentChildren {
  const value = e.value instanceof JsonObject ? e.value : new JsonObject();
  return shownMembers(group, value)
    .filter((m) => m.name !== skip)
    .map((m) => (
      <FieldEntry
        key={m.name}
        field={m.field}
        pointer={`${e.pointer}/${m.name.replaceAll("~", "~0").replaceAll("/", "~1")}`}
        value={value.get(m.name)}
        enter={(v) => e.enter(value.with(m.name, v))}
        problems={e.problems}
        isRequired={m.isRequired}
      />
    ));
}

/** Returns a value without the members that are not shown beside it. */
export function dropHidden(field: Field, value: Json | undefined): Json | undefined {
  if (field.kind !== "group" || !(value instanceof JsonObject)) return value;
  const known = new Set([...field.members, ...field.conditions.flatMap((c) => [...c.then.members, ...c.otherwise.members])].map((m: Member) => m.name));
  const shown = new Map(shownMembers(field, value).map((m) => [m.name, m.field]));
  return new JsonObject(
    value.members.filter(([name]) => shown.has(name) || !known.has(name)).map(([name, v]) => [name, shown.has(name) ? dropHidden(shown.get(name)!, v)! : v] as const),
  );
}

export function FieldEntry({ field, ...e }: Entry & { field: Field }): ComponentChildren {
  switch (field.kind) {
    case "group":
      return (
        <fieldset id={idOf(e.pointer)}>
          <legend><Text of={field.title} /></legend>
          <About field={field} {...e} />
          <Members group={field} {...e} />
        </fieldset>
      );
    case "choice":
      return field.options.length <= 4 ? <Segments field={field} {...e} /> : <Select field={field} {...e} />;
    case "many":
      return <Checks field={field} {...e} />;
    case "switch":
      return <Segments field={{ ...field, kind: "choice", options: [{ value: true, title: "Yes" }, { value: false, title: "No" }] }} {...e} />;
    case "number":
      return <Labelled field={field} {...e}>{(aria) => <input {...aria} inputMode="decimal" autoComplete="off" value={shownText(e.value)} onInput={(v) => e.enter(readNumber(v.currentTarget.value))} />}</Labelled>;
    case "text":
    case "date":
      return (
        <Labelled field={field} {...e}>
          {(aria) => <input {...aria} {...(field.kind === "date" ? { type: "date" } : {})} dir="auto" autoComplete="off" value={shownText(e.value)} onInput={(v) => e.enter(readText(v.currentTarget.value, e.isRequired))} />}
        </Labelled>
      );
    case "lines":
      return <Labelled field={field} {...e}>{(aria) => <textarea {...aria} rows={3} dir="auto" value={shownText(e.value)} onInput={(v) => e.enter(readText(v.currentTarget.value, e.isRequired))} />}</Labelled>;
    case "list":
      return <List field={field} {...e} />;
    case "json":
      return <JsonEntry field={field} {...e} />;
  }
}

/** Returns the id of the element of a place. */
export function idOf(pointer: string): string {
  return "field" + pointer.replaceAll(/[^\w/-]/g, (c) => "." + c.codePointAt(0)).replaceAll("/", "--");
}

type Aria = { id: string; "aria-invalid": boolean; "aria-required": boolean; "aria-describedby"?: string };

function ariaOf(field: Field, e: Entry): Aria {
  const id = idOf(e.pointer);
  const described = [field.about && id + "-about", e.problems[e.pointer] && id + "-problem"].filter(Boolean).join(" ");
  return { id, "aria-invalid": !!e.problems[e.pointer], "aria-required": e.isRequired, ...(described && { "aria-describedby": described }) };
}

function About({ field, pointer, problems }: Entry & { field: Field }): ComponentChildren {
  const id = idOf(pointer);
  return (
    <>
      {field.about && <span class="hint" id={id + "-about"} dir="auto"><Text of={field.about} /></span>}
      {problems[pointer] && <span class="problem" id={id + "-problem"}><Text of={problems[pointer]} /></span>}
    </>
  );
}

function Title({ field, isRequired }: { field: Field; isRequired: boolean }): ComponentChildren {
  return (
    <>
      <Text of={field.title || "Answer"} />
      {!isRequired && <i>optional</i>}
    </>
  );
}

function Labelled({ field, children, ...e }: Entry & { field: Field; children: (aria: Aria) => ComponentChildren }): ComponentChildren {
  const aria = ariaOf(field, e);
  return (
    <div class="field">
      <label class="label" for={aria.id}><Title field={field} isRequired={e.isRequired} /></label>
      {children(aria)}
      <About field={field} {...e} />
    </div>
  );
}

type OptionField = Field & { kind: "choice" | "many" };

function Segments({ field, ...e }: Entry & { field: OptionField }): ComponentChildren {
  const aria = ariaOf(field, e);
  return (
    <div class="field" role="radiogroup" aria-labelledby={aria.id + "-label"} {...aria}>
      <span class="label" id={aria.id + "-label"}><Title field={field} isRequired={e.isRequired} /></span>
      <div class="segments">
        {field.options.map((o) => (
          <label class={equalJson(o.value, e.value) ? "on" : ""}>
            <input type="radio" name={aria.id} checked={equalJson(o.value, e.value)} onChange={() => e.enter(o.value)} />
            <Text of={o.title} />
          </label>
        ))}
        {!e.isRequired && e.value !== undefined && (
          <button type="button" class="clear" onClick={() => e.enter(undefined)}>clear</button>
        )}
      </div>
      <About field={field} {...e} />
    </div>
  );
}

function Select({ field, ...e }: Entry & { field: OptionField }): ComponentChildren {
  const chosen = field.options.findIndex((o) => equalJson(o.value, e.value));
  return (
    <Labelled field={field} {...e}>
      {(aria) => (
        <select {...aria} value={chosen} onChange={(v) => e.enter(field.options[Number(v.currentTarget.value)]?.value)}>
          <option value={-1}>{e.isRequired ? "Choose…" : "None"}</option>
          {field.options.map((o, i) => <option value={i}>{plainText(o.title)}</option>)}
        </select>
      )}
    </Labelled>
  );
}

function Checks({ field, ...e }: Entry & { field: OptionField }): ComponentChildren {
  const aria = ariaOf(field, e);
  const chosen = isList(e.value) ? e.value : [];
  const has = (o: Option): boolean => chosen.some((v) => equalJson(v, o.value));
  const toggle = (o: Option): void => e.enter(has(o) ? chosen.filter((v) => !equalJson(v, o.value)) : [...chosen, o.value]);
  return (
    <div class="field" role="group" aria-labelledby={aria.id + "-label"} id={aria.id}>
      <span class="label" id={aria.id + "-label"}><Title field={field} isRequired={e.isRequired} /></span>
      <div class="checks">
        {field.options.map((o) => (
          <label><input type="checkbox" checked={has(o)} onChange={() => toggle(o)} /><Text of={o.title} /></label>
        ))}
      </div>
      <About field={field} {...e} />
    </div>
  );
}

function List({ field, ...e }: Entry & { field: Field & { kind: "list" } }): ComponentChildren {
  const items = isList(e.value) ? e.value : [];
  const enter = (list: readonly (Json | undefined)[]): void => e.enter(list.length === 0 && !e.isRequired ? undefined : list.map((v) => v ?? null));
  return (
    <fieldset id={idOf(e.pointer)}>
      <legend><Title field={field} isRequired={e.isRequired} /></legend>
      <About field={field} {...e} />
      {items.map((item, i) => (
        <div class="item" key={i}>
          <FieldEntry field={{ ...field.item, title: field.item.title || `${i + 1}` }} pointer={`${e.pointer}/${i}`} value={item} enter={(v) => enter(items.with(i, v ?? blankValue(field.item)))} problems={e.problems} isRequired />
          <button type="button" class="ghost" aria-label={`Remove ${i + 1}`} onClick={() => enter(items.toSpliced(i, 1))}>Remove</button>
        </div>
      ))}
      <button type="button" class="ghost" onClick={() => enter([...items, initialValue(field.item) ?? blankValue(field.item)])}>Add</button>
    </fieldset>
  );
}

function blankValue(field: Field): Json {
  return field.kind === "group" ? new JsonObject() : field.kind === "list" || field.kind === "many" ? [] : field.kind === "text" || field.kind === "lines" ? "" : null;
}

/** A value that is entered as JSON; a text that is none yet enters nothing, and says so. */
export function JsonEntry({ field, rows = 4, ...e }: Entry & { field: Field; rows?: number }): ComponentChildren {
  const [text, setText] = useState(() => (e.value === undefined ? "" : printJson(e.value, "  ")));
  const read = tryParse(text);
  const isCurrent = equalJson(read.value, e.value);
  const shown = isCurrent || read.problem ? text : e.value === undefined ? "" : printJson(e.value, "  ");
  const problems = read.problem ? { ...e.problems, [e.pointer]: `is no JSON: ${read.problem}` } : e.problems;
  return (
    <Labelled field={field} {...e} problems={problems}>
      {(aria) => (
        <textarea
          {...aria}
          class="mono"
          rows={rows}
          spellcheck={false}
          value={shown}
          onInput={(v) => {
            setText(v.currentTarget.value);
            e.enter(tryParse(v.currentTarget.value).value);
          }}
        />
      )}
    </Labelled>
  );
}

function tryParse(text: string): { value?: Json; problem?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: parseJson(text) };
  } catch (err) {
    if (err instanceof JsonError) return { problem: err.message };
    throw err;
  }
}

/** Returns the number of a text. A text that is none is sent as it is: the server says what is wrong. */
function readNumber(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed) ? new Decimal(trimmed) : text;
}

function readText(text: string, isRequired: boolean): Json | undefined {
  return text === "" && !isRequired ? undefined : text;
}

function shownText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : printJson(value);
}

// What a form knows of a JSON Schema. A schema that it does not know whole is edited as JSON; what an
// answer must satisfy, the server decides.

import { decodeText } from "../text/address";
import { Decimal, equalJson, isList, type Json, JsonObject } from "../json/value";

export interface Option {
  value: Json;
  title: string;
}

/** What is entered in a place of an answer. */
export type Field = { title: string; about: string; initial: Json | undefined } & (
  | { kind: "group"; members: readonly Member[]; conditions: readonly Condition[] }
  | { kind: "choice" | "many"; options: readonly Option[] }
  | { kind: "list"; item: Field }
  | { kind: "number" | "text" | "lines" | "date" | "switch" | "json" }
);

export interface Member {
  name: string;
  field: Field;
  isRequired: boolean;
}

/** Says what a value of some members means for others. */
interface Condition {
  holds: (value: JsonObject) => boolean;
  then: Consequence;
  otherwise: Consequence;
}

interface Consequence {
  required: readonly string[];
  refused: readonly string[];
  members: readonly Member[];
}

// Words that say what a value must be, beside those that readField reads: the server checks them.
const checked = new Set([
  "$schema", "$id", "$comment", "$defs", "definitions", "examples", "deprecated", "readOnly", "writeOnly", "minLength", "maxLength", "pattern",
  "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties",
  "maxProperties", "title", "description", "default", "type", "format", "contentMediaType",
]);
const longText = 200; // a text that may be longer has several lines
const deepest = 8; // what is nested deeper is edited as JSON
const mostFields = 2000; // what has more, as a schema that leads back to itself, is edited as JSON

/** Reads a schema; undefined is that of every value. */
export function readSchema(schema: Json | undefined): Field {
  return readField(schema ?? true, { root: schema ?? true, name: "", depth: 0, count: { fields: 0 } });
}

interface Place {
  root: Json;
  name: string;
  depth: number;
  /** Of the whole form. */
  count: { fields: number };
}

function readField(given: Json, place: Place): Field {
  const schema = resolve(given, place.root);
  const about = { title: textOf(schema, "title") || toTitle(place.name), about: textOf(schema, "description"), initial: initialOf(schema) };
  return { ...about, ...(readKind(schema, place) ?? { kind: "json" }) } as Field;
}

type Kind = Omit<Field, "title" | "about" | "initial"> | undefined;

/** Returns undefined for a schema that is not known whole. */
function readKind(schema: Json, place: Place): Kind {
  if (!(schema instanceof JsonObject) || place.depth > deepest || place.count.fields++ > mostFields) return undefined;
  const knows = (...words: string[]): boolean => schema.members.every(([word]) => checked.has(word) || words.includes(word));
  const options = readOptions(schema);
  if (options) return knows("enum", "oneOf", "const") ? ({ kind: "choice", options } as Kind) : undefined;
  switch (schema.get("type")) {
    case "boolean":
      return knows() ? { kind: "switch" } as Kind : undefined;
    case "number":
    case "integer":
      return knows() ? { kind: "number" } as Kind : undefined;
    case "string":
      return knows() ? { kind: textKind(schema) } as Kind : undefined;
    case "array":
      return knows("items") ? readList(schema, place) : undefined;
    case "object":
      return knows("properties", "required", "additionalProperties", "if", "then", "else", "allOf") ? readGroup(schema, place) : undefined;
  }
  return undefined;
}

function textKind(schema: JsonObject): "text" | "lines" | "date" {
  if (schema.get("format") === "date") return "date";
  const most = schema.get("maxLength");
  return schema.get("contentMediaType") !== undefined || (most instanceof Decimal && Number(most.text) > longText) ? "lines" : "text";
}

function readList(schema: JsonObject, place: Place): Kind {
  const items = schema.get("items");
  if (items === undefined) return undefined;
  const item = readField(items, { ...place, name: "", depth: place.depth + 1 });
  if (item.kind === "json") return undefined;
  if (item.kind === "choice" && schema.get("uniqueItems") === true) return { kind: "many", options: item.options } as Kind;
  return { kind: "list", item } as Kind;
}

function readGroup(schema: JsonObject, place: Place): Kind {
  const properties = schema.get("properties");
  const extra = schema.get("additionalProperties") ?? true;
  if (!(properties instanceof JsonObject) || typeof extra !== "boolean") return undefined;
  const required = names(schema.get("required"));
  const conditions = readConditions(schema, place);
  if (!conditions) return undefined;
  const members = properties.members.map(([name, s]) => ({
    name,
    field: readField(s, { ...place, name, depth: place.depth + 1 }),
    isRequired: required.includes(name),
  }));
  return { kind: "group", members, conditions } as Kind;
}

/** Returns undefined for a condition that is not known: then nothing is hidden by it, and the form is JSON. */
function readConditions(schema: JsonObject, place: Place): Condition[] | undefined {
  const all = [schema, ...(isList(schema.get("allOf")) ? (schema.get("allOf") as readonly Json[]) : [])];
  const conditions: Condition[] = [];
  for (const [i, part] of all.entries()) {
    if (!(part instanceof JsonObject)) return undefined;
    if (i > 0 && !part.members.every(([word]) => ["if", "then", "else", "$comment", "title"].includes(word))) return undefined;
    const test = part.get("if");
    if (test === undefined) continue;
    const holds = readTest(test);
    const [then, otherwise] = [readConsequence(part.get("then"), place), readConsequence(part.get("else"), place)];
    if (!holds || !then || !otherwise) return undefined;
    conditions.push({ holds, then, otherwise });
  }
  return conditions;
}

function readTest(test: Json): Condition["holds"] | undefined {
  if (!(test instanceof JsonObject) || !test.members.every(([word]) => word === "properties" || word === "required")) return undefined;
  const properties = test.get("properties") ?? new JsonObject();
  if (!(properties instanceof JsonObject)) return undefined;
  const wanted: [string, readonly Json[]][] = [];
  for (const [name, s] of properties.members) {
    const options = s instanceof JsonObject && s.members.length === 1 ? readOptions(s) : undefined;
    if (!options) return undefined;
    wanted.push([name, options.map((o) => o.value)]);
  }
  const present = names(test.get("required"));
  return (value) =>
    present.every((name) => value.get(name) !== undefined) &&
    wanted.every(([name, values]) => {
      const v = value.get(name);
      return v !== undefined && values.some((w) => equalJson(w, v)); // what is not entered yet decides nothing
    });
}

function readConsequence(schema: Json | undefined, place: Place): Consequence | undefined {
  if (schema === undefined || schema === true) return { required: [], refused: [], members: [] };
  if (!(schema instanceof JsonObject)) return undefined;
  if (!schema.members.every(([word]) => ["required", "properties", "type", "additionalProperties"].includes(word))) return undefined;
  const required = names(schema.get("required"));
  const properties = schema.get("properties") ?? new JsonObject();
  if (!(properties instanceof JsonObject)) return undefined;
  const isRefused = (s: Json): boolean => s === false || (s instanceof JsonObject && s.get("not") instanceof JsonObject && s.members.length === 1);
  const refused = properties.members.filter(([, s]) => isRefused(s)).map(([name]) => name);
  const members = properties.members
    .filter(([, s]) => !isRefused(s))
    .map(([name, s]) => ({ name, field: readField(s, { ...place, name, depth: place.depth + 1 }), isRequired: required.includes(name) }));
  return { required, refused, members };
}

function readOptions(schema: JsonObject): Option[] | undefined {
  const toOption = (value: Json, title?: Json): Option => ({ value, title: typeof title === "string" ? title : toTitle(showValue(value)) });
  const constant = schema.get("const");
  if (constant !== undefined) return [toOption(constant, schema.get("title"))];
  const values = schema.get("enum");
  if (isList(values)) return values.map((v) => toOption(v));
  const cases = schema.get("oneOf");
  if (!isList(cases) || cases.length === 0) return undefined;
  const options: Option[] = [];
  for (const c of cases) {
    const value = c instanceof JsonObject ? c.get("const") : undefined;
    if (value === undefined) return undefined;
    options.push(toOption(value, (c as JsonObject).get("title")));
  }
  return options;
}

/** Follows $ref inside of the schema; one that leads elsewhere, or that stands beside other words, stays. */
function resolve(schema: Json, root: Json): Json {
  for (let i = 0; i < deepest; i++) {
    const ref = schema instanceof JsonObject ? schema.get("$ref") : undefined;
    if (typeof ref !== "string" || !ref.startsWith("#/") || !(schema instanceof JsonObject)) return schema;
    const beside = schema.members.filter(([word]) => word !== "$ref");
    if (!beside.every(([word]) => word === "title" || word === "description" || word === "default")) return schema;
    let found: Json | undefined = root;
    for (const step of ref.slice(2).split("/")) {
      found = found instanceof JsonObject ? found.get(decodeText(step).replaceAll("~1", "/").replaceAll("~0", "~")) : undefined;
    }
    if (!(found instanceof JsonObject)) return schema;
    schema = beside.reduce((s, [word, value]) => s.with(word, value), found);
  }
  return schema;
}

function initialOf(schema: Json): Json | undefined {
  if (!(schema instanceof JsonObject)) return undefined;
  return schema.get("default") ?? schema.get("const");
}

function names(list: Json | undefined): string[] {
  return isList(list) ? list.filter((n) => typeof n === "string") : [];
}

function textOf(schema: Json, word: string): string {
  const text = schema instanceof JsonObject ? schema.get(word) : undefined;
  return typeof text === "string" ? text : "";
}

/** Shows a value in a word: texts without quotes. */
function showValue(value: Json): string {
  if (typeof value === "string") return value;
  if (value instanceof Decimal) return value.text;
  return value === null ? "none" : value === true ? "yes" : value === false ? "no" : "{…}";
}

/** Returns the value with which a field begins, undefined for none. */
export function initialValue(field: Field): Json | undefined {
  if (field.initial !== undefined || field.kind !== "group") return field.initial;
  const members: [string, Json][] = [];
  for (const m of field.members) {
    const value = initialValue(m.field);
    if (value !== undefined) members.push([m.name, value]);
  }
  return new JsonObject(members);
}

/** Returns the members of a group that are shown beside a value: those that only another value needs are not. */
export function shownMembers(group: Field & { kind: "group" }, value: JsonObject): Member[] {
  const [required, hidden] = [new Set<string>(), new Set<string>()];
  const fields = new Map(group.members.map((m) => [m.name, m.field]));
  for (const m of group.members) if (m.isRequired) required.add(m.name);
  const refused = new Set<string>();
  for (const c of group.conditions) {
    const [active, other] = c.holds(value) ? [c.then, c.otherwise] : [c.otherwise, c.then];
    active.required.forEach((name) => required.add(name));
    active.refused.forEach((name) => refused.add(name));
    for (const name of [...other.required, ...other.members.map((m) => m.name)]) hidden.add(name);
  }
  for (const c of group.conditions) {
    for (const m of (c.holds(value) ? c.then : c.otherwise).members) {
      hidden.delete(m.name);
      if ((fields.get(m.name)?.kind ?? "json") === "json") fields.set(m.name, m.field);
    }
  }
  for (const name of required) {
    hidden.delete(name);
    if (!fields.has(name)) fields.set(name, { kind: "json", title: toTitle(name), about: "", initial: undefined });
  }
  return [...fields]
    .filter(([name]) => !hidden.has(name) && !refused.has(name))
    .map(([name, field]) => ({ name, field, isRequired: required.has(name) }));
}

/** Returns a name as people write it: "pay_within_days" is "Pay within days". */
export function toTitle(name: string): string {
  if (!/^[a-z0-9]+([_-][a-z0-9]+)*$/.test(name)) return name;
  const words = name.replaceAll(/[_-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

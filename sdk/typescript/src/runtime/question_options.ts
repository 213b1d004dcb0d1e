/** Checks what a program says of a question besides its value. A wrong option would change who may answer, or until when. */
import type { InterruptOptions, People, QuestionStep } from "../values/index.js";
import { checkDriftIgnore, checkSecret } from "./pointers.js";

/** Throws a TypeError that names the option and says what it takes. */
type Check = (value: unknown, name: string) => void;
type Checks<T> = { readonly [name in keyof T]-?: Check };
type Audience = NonNullable<QuestionStep["remind"]> & NonNullable<QuestionStep["escalate"]>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const accept =
  (takes: string, fits: (value: unknown) => boolean): Check =>
  (value, name) => {
    if (!fits(value)) throw new TypeError(`${name} must be ${takes}, not ${show(value)}`);
  };

const word = (...words: string[]) =>
  accept(`one of ${words.map((one) => `"${one}"`).join(", ")}`, (value) => words.includes(String(value)));

const text = accept("a text", (value) => typeof value === "string");
const texts = accept(
  'a list of texts, like ["ann"]',
  (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
);
const flag = accept("true or false", (value) => typeof value === "boolean");
const count = accept(
  "a whole number, 0 or more",
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
const time = accept(
  "a number of milliseconds, 0 or more",
  (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
);
const anything: Check = () => {};

/** An object whose fields fit; others are refused. */
const fields =
  <T>(checks: Checks<T>): Check =>
  (value, name) => {
    const names = Object.keys(checks);
    if (!isObject(value)) throw new TypeError(`${name} must be an object, not ${show(value)}`);
    for (const [field, given] of Object.entries(value)) {
      if (!Object.hasOwn(checks, field)) {
        throw new TypeError(`${name} has no "${field}"; it takes ${names.join(", ")}`);
      }
      if (given !== undefined && given !== null) {
        checks[field as keyof T](given, name === CALL ? field : `${name}.${field}`);
      }
    }
  };

const CALL = "interrupt()";
const priority = word("low", "normal", "high", "urgent");
const people = fields<People>({
  users: texts,
  groups: texts,
  approvals: count,
  vetoes: count,
  agree: text,
  notRequester: flag,
  requester: text,
  notContributor: flag,
  exclusive: flag,
  delegable: flag,
  revealUsers: texts,
  revealGroups: texts,
});
const reminder = { after: time, users: texts, groups: texts };
const remind = fields<Omit<Audience, "priority">>(reminder);
const escalate = fields<Audience>({ ...reminder, priority });

const steps: Check = (value, name) => {
  if (!Array.isArray(value)) throw new TypeError(`${name} must be a list, not ${show(value)}`);
  for (const [index, step] of value.entries()) checkStep(step, `${name}[${index}]`);
};

function checkStep(step: unknown, name: string): void {
  const [kind, ...others] = isObject(step) ? Object.keys(step).filter((key) => step[key] !== undefined) : [];
  if (!isObject(step) || others.length > 0 || (kind !== "remind" && kind !== "escalate")) {
    throw new TypeError(
      `${name} must be { remind: { after } } or { escalate: { after, groups } }, not ${show(step)}`,
    );
  }
  const audience = step[kind];
  (kind === "remind" ? remind : escalate)(audience, `${name}.${kind}`);
  time((audience as Record<string, unknown>).after, `${name}.${kind}.after`);
}

const question = fields<InterruptOptions>({
  responseSchema: anything,
  schema: anything,
  key: text,
  reason: text,
  message: text,
  assignees: texts,
  ttl: time,
  onExpiry: word("fail_node", "resume_default", "cancel_run"),
  default: anything,
  people,
  priority,
  steps,
  undo: time,
  drift: word("fail", "ask_again", "accept"),
  driftIgnore: (parts) => void checkDriftIgnore(parts as readonly string[]),
  secret: (pointers) => void checkSecret(pointers as readonly string[]),
});

/** Checks the options of a question. Throws a TypeError that names the option and says what it takes. */
export function checkQuestionOptions(options: InterruptOptions): void {
  if (!isObject(options))
    throw new TypeError(`the options of ${CALL} must be an object, not ${show(options)}`);
  question(options, CALL);
}

function show(value: unknown): string {
  if (Array.isArray(value)) return "such a list";
  if (isObject(value)) return `an object with ${Object.keys(value).join(", ") || "nothing"}`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

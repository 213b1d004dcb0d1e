/** Matches what a node does with what it did before it was interrupted. */
import { NonDeterministicNode } from "../errors/index.js";
import type { Drift, InterruptOptions } from "../values/index.js";
import { digestSecrets, digestShown, type Shown } from "./digest.js";

/** Where a question or memo stands: the index-th of a scope, or of a key in it. */
export type Place = { readonly scope: string; readonly key: string; readonly index: number };

/** What came of a question. */
export type Answer = {
  readonly value?: unknown;
  /** Why it was declined. */
  readonly dismissed?: string;
  readonly expired?: boolean;
  /** Digest of what was shown. */
  readonly seen: string;
  readonly questionId: string;
  /** Digest of the value of the question with its secret parts. */
  readonly secretSeen: string;
};

export type QuestionOptions = Omit<InterruptOptions, "responseSchema" | "schema"> & {
  /** The JSON Schema of an answer, as text. */
  schemaText: string | undefined;
};

/** What a node asks, and at which place. */
export class Question {
  constructor(
    readonly place: Place,
    readonly value: unknown,
    /** The JSON text of the value. */
    readonly text: string,
    readonly options: QuestionOptions = { schemaText: undefined },
  ) {}

  get secret(): readonly string[] {
    return this.options.secret ?? [];
  }

  private get shown(): Shown {
    return { value: this.text, message: this.options.message ?? "", schema: this.options.schemaText };
  }

  digest(ignore: readonly string[] = []): string {
    return digestShown(this.shown, [...ignore, ...(this.options.driftIgnore ?? [])], this.secret);
  }

  secretDigest(id: string, ignore: readonly string[] = []): string {
    return digestSecrets(id, this.text, [...ignore, ...(this.options.driftIgnore ?? [])], this.secret);
  }

  /** Whether a person would see the same. */
  showsSame(other: Question): boolean {
    return this.digest() === other.digest() && this.secretDigest("") === other.secretDigest("");
  }
}

/** An answer that the attempt has used, and for what. */
export type UsedAnswer = {
  readonly place: Place;
  readonly seen: string;
  readonly secretSeen: string;
  /** Set when something else was shown, and the program accepts that. */
  readonly asked: Question | undefined;
};

export type DriftRules = { drift: Drift | undefined; driftIgnore: readonly string[] };

export class Replay {
  readonly questions: Question[] = [];
  readonly used: UsedAnswer[] = [];
  private readonly answers = new Map<string, { place: Place; answer: Answer }>();
  private readonly memos = new Map<string, { place: Place; value: unknown }>();
  private readonly unseen = new Map<string, Place>();
  private readonly next = new Map<string, number>();
  private difference: NonDeterministicNode | undefined;

  constructor(
    answers: Iterable<{ place: Place; answer: Answer }> = [],
    memos: Iterable<{ place: Place; value: unknown }> = [],
    private readonly rules: DriftRules = { drift: undefined, driftIgnore: [] },
  ) {
    for (const one of answers) this.answers.set(idOf(one.place), one);
    for (const one of memos) this.memos.set(idOf(one.place), one);
    for (const { place } of [...this.answers.values(), ...this.memos.values()])
      this.unseen.set(idOf(place), place);
  }

  /** The code of a scope still repeats what it did before. */
  isMuted(scope: string): boolean {
    if (this.unseen.size === 0) return false;
    const journal = [...this.answers.values(), ...this.memos.values()];
    if (scope === "" || !journal.some(({ place }) => isWithin(place.scope, scope))) return true;
    return [...this.unseen.values()].some((place) => isWithin(place.scope, scope));
  }

  /** The answer to the next question. One without an answer is filed, and returned. */
  askQuestion(scope: string, key: string, build: (place: Place) => Question): Answer | Question {
    const place = this.nextPlace(scope, key);
    if (this.memos.has(idOf(place)))
      throw this.recordDifference(`memo ${format(place)}`, `question ${format(place)}`);
    const question = build(place);
    const known = this.answers.get(idOf(place));
    if (known !== undefined) {
      this.unseen.delete(idOf(place));
      if (this.useAnswer(known.answer, question)) return known.answer;
    }
    // A program that caught its question may ask it again, as a retry does.
    const repeated = this.questions.find(
      (asked) => asked.place.scope === scope && asked.place.key === key && asked.showsSame(question),
    );
    if (repeated === undefined) this.questions.push(question);
    return repeated ?? question;
  }

  /** Files a question behind those that were answered; it takes no answer. */
  fileQuestion(value: unknown, text: string): void {
    let place = this.nextPlace("", "");
    while (this.answers.has(idOf(place))) {
      this.unseen.delete(idOf(place));
      place = this.nextPlace("", "");
    }
    this.questions.push(new Question(place, value, text));
  }

  private useAnswer(known: Answer, question: Question): boolean {
    if (known.seen === "") return true; // of a server that compares nothing
    const seen = question.digest(this.rules.driftIgnore);
    const secretSeen = question.secretDigest(known.questionId, this.rules.driftIgnore);
    const isSame = seen === known.seen && secretSeen === known.secretSeen;
    const drift = question.options.drift ?? this.rules.drift;
    if (!isSame && drift !== "accept") return false;
    const { place } = question;
    if (!this.used.some((one) => idOf(one.place) === idOf(place))) {
      this.used.push({ place, seen, secretSeen, asked: isSame ? undefined : question });
    }
    return true;
  }

  /** The place of the next use of a key, and its record if there is one. */
  lookUpMemo(scope: string, key: string): { place: Place; record?: { value: unknown } } {
    const place = this.nextPlace(scope, key);
    if (this.answers.has(idOf(place)))
      throw this.recordDifference(`question ${format(place)}`, `memo ${format(place)}`);
    const record = this.memos.get(idOf(place));
    if (record === undefined) return { place };
    this.unseen.delete(idOf(place));
    return { place, record };
  }

  /** A memo was recorded in this attempt. */
  keepMemo(place: Place, value: unknown): void {
    this.memos.set(idOf(place), { place, value });
  }

  /** The question that a scope waits for. */
  openQuestion(scope: string): Question | undefined {
    return this.questions.find(({ place }) => place.scope === scope);
  }

  /** Puts the questions of scopes that ran side by side in their order. */
  orderQuestions(scopes: readonly string[]): void {
    this.questions.sort((one, other) => scopes.indexOf(one.place.scope) - scopes.indexOf(other.place.scope));
  }

  /** Throws the first difference between the journal and the attempt. */
  checkFinished(): void {
    if (this.difference === undefined && this.questions.length > 0) this.findMovedQuestion();
    if (this.difference !== undefined) throw this.difference;
  }

  /**
   * An answer without its question, in a scope that asks something else: its question has moved. One key more
   * or less is what keys are for.
   */
  private findMovedQuestion(): void {
    for (const place of this.unseen.values()) {
      if (!this.answers.has(idOf(place))) continue;
      for (const { place: now } of this.questions) {
        if (this.answers.has(idOf(now))) continue; // what comes behind it is still to come
        if (now.scope === place.scope && !(now.key && place.key)) {
          this.recordDifference(`question ${format(place)}`, `question ${format(now)}`);
          return;
        }
      }
    }
  }

  private nextPlace(scope: string, key: string): Place {
    if (this.difference !== undefined) throw this.difference;
    const id = JSON.stringify([scope, key]);
    const index = this.next.get(id) ?? 0;
    this.next.set(id, index + 1);
    return { scope, key, index };
  }

  private recordDifference(before: string, now: string): NonDeterministicNode {
    this.difference = new NonDeterministicNode(
      `before it was interrupted the node had ${before}, now it has ${now}`,
    );
    return this.difference;
  }
}

function idOf({ scope, key, index }: Place): string {
  return JSON.stringify([scope, key, index]);
}

function format({ scope, key, index }: Place): string {
  return `number ${index + 1}${key && ` of key "${key}"`}${scope && ` in scope "${scope}"`}`;
}

function isWithin(scope: string, outer: string): boolean {
  return scope === outer || scope.startsWith(`${outer}/`);
}

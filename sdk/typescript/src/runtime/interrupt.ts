import { encode } from "../codec/index.js";
import { GraphInterrupt, GraphValueError, InterruptDismissed, InterruptExpired } from "../errors/index.js";
import type { InterruptOptions } from "../values/index.js";
import { parseExactly, writeCanonical } from "./canonical_json.js";
import { hideParts } from "./pointers.js";
import { checkQuestionOptions } from "./question_options.js";
import { Question, type QuestionOptions } from "./replay.js";
import { RefusedAnswer, type ResponseSchema, readResponseSchema } from "./response_schema.js";
import { currentScope, requiredTask } from "./task.js";

const NOT_SHOWN = "why is not shown, because it has secret parts";

/**
 * Asks a person, and returns the answer once there is one.
 *
 * Until then the node is left by an error that must not be caught, and run again from its first line. Questions
 * without a key are matched with their answers by their order; one with a key keeps its answer when the code
 * around it changes. `responseSchema` is the JSON Schema or zod schema of the answer: the server refuses other
 * answers before the node runs.
 *
 * Throws `InterruptDismissed` or `InterruptExpired` when no answer will come.
 */
export function interrupt<I = unknown, R = any>(value: I, options: InterruptOptions = {}): R {
  const task = requiredTask("interrupt()");
  if (!task.isStored) {
    throw new GraphValueError(
      "interrupt() needs a thread that is kept: compile({ checkpointer: new MemorySaver() }), or a server",
      {
        lc_error_code: "MISSING_CHECKPOINTER",
      },
    );
  }
  checkQuestionOptions(options);
  const wanted = readResponseSchema(options.responseSchema ?? options.schema);
  if (options.onExpiry === "resume_default") checkDefault(options, wanted);
  let asked: QuestionOptions = { ...options, schemaText: wanted.text };
  for (;;) {
    const answer = ask(value, asked);
    try {
      return wanted.readAnswer(answer) as R;
    } catch (error) {
      if (!(error instanceof RefusedAnswer)) throw error;
      // The same place of every replay.
      asked = explainRefusal(asked, options, error);
    }
  }

  function ask(question: unknown, given: QuestionOptions): unknown {
    const text = encode(question ?? null);
    const outcome = task.replay.askQuestion(
      currentScope(),
      given.key ?? "",
      (place) => new Question(place, question, text, given),
    );
    if (outcome instanceof Question) throw interruptOf(outcome);
    if (outcome.dismissed !== undefined) throw new InterruptDismissed(outcome.dismissed);
    if (outcome.expired) throw new InterruptExpired("no answer came in time");
    return outcome.value;
  }
}

/** The error with which a node is left for a question. */
export function interruptOf(question: Question): GraphInterrupt {
  const value = question.secret.length === 0 ? question.value : hideSecrets(question);
  const { schemaText } = question.options;
  return new GraphInterrupt([
    { value, ...(schemaText !== undefined && { response_schema: JSON.parse(schemaText) as unknown }) },
  ]);
}

function hideSecrets({ text, secret }: Question): unknown {
  return JSON.parse(writeCanonical(hideParts(parseExactly(text), secret).value));
}

function checkDefault(options: InterruptOptions, wanted: ResponseSchema): void {
  try {
    wanted.readAnswer(options.default ?? null);
  } catch (error) {
    const why = options.secret?.length ? NOT_SHOWN : (error as Error).message;
    throw new TypeError(`interrupt(): default is no answer, responseSchema refuses it: ${why}`);
  }
}

/** The options of a question that is asked anew because its answer was refused. */
function explainRefusal(
  asked: QuestionOptions,
  options: InterruptOptions,
  refused: RefusedAnswer,
): QuestionOptions {
  const why = `the last answer was refused: ${options.secret?.length ? NOT_SHOWN : refused.message}`;
  const message = options.message ? `${options.message}\n${why}` : why;
  // The text of the refusal may be another one with another version of zod.
  return { ...asked, message, driftIgnore: [...(options.driftIgnore ?? []), "message"] };
}

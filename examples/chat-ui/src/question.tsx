/** The calls of tools that wait for a person: each is approved, changed or rejected. */
import type { Interrupt } from "@langchain/langgraph-sdk";
import { type FormEvent, useState } from "react";

type Args = Record<string, unknown>;

/** What ToolApproval asks. */
export type Question = { name: string; args: Args };

/** What it takes for an answer. */
export type Decision =
  | { type: "approve" }
  | { type: "edit"; args: Args }
  | { type: "reject"; message?: string };

type Decisions = Record<string, Decision>;

type Props = {
  questions: Interrupt<Question>[];
  refusal: string | undefined; // why the server has not taken the decisions
  onAnswer: (decisions: Decisions) => void;
};

/** The answers are sent together when there is one for each question. */
export function Questions({ questions, refusal, onAnswer }: Props) {
  const [decisions, setDecisions] = useState<Decisions>({});

  function decide(id: string, decision: Decision | undefined) {
    const { [id]: _, ...others } = decisions;
    const all = decision === undefined ? others : { ...others, [id]: decision };
    setDecisions(all);
    if (questions.every((one) => all[one.id ?? ""] !== undefined)) onAnswer(all);
  }

  return (
    <>
      {questions.map(
        ({ id = "", value }) =>
          value && (
            <Card
              key={id}
              question={value}
              decision={decisions[id]}
              onDecide={(decision) => decide(id, decision)}
            />
          ),
      )}
      {questions.length > 1 && (
        <p className="hint">The decisions are sent when there is one for each question.</p>
      )}
      {refusal !== undefined && <p role="alert">The server has not taken this: {refusal}</p>}
    </>
  );
}

type CardProps = {
  question: Question;
  decision: Decision | undefined;
  onDecide: (decision: Decision | undefined) => void;
};

function Card({ question, decision, onDecide }: CardProps) {
  const [form, setForm] = useState<"edit" | "reject">();
  const close = () => setForm(undefined);
  return (
    <section className="question" aria-label={`${question.name} ${question.args.order}`}>
      <h2>May I call {question.name}?</h2>
      {form === "edit" ? (
        <EditForm
          args={question.args}
          onCancel={close}
          onEdit={(args) => {
            close();
            onDecide({ type: "edit", args });
          }}
        />
      ) : (
        <dl>
          {Object.entries(decision?.type === "edit" ? decision.args : question.args).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{String(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      {form === "reject" && (
        <RejectForm
          onCancel={close}
          onReject={(message) => {
            close();
            onDecide({ type: "reject", message });
          }}
        />
      )}
      {form === undefined && decision === undefined && (
        <div className="buttons">
          <button type="button" className="main" onClick={() => onDecide({ type: "approve" })}>
            Approve
          </button>
          <button type="button" onClick={() => setForm("edit")}>
            Edit
          </button>
          <button type="button" onClick={() => setForm("reject")}>
            Reject
          </button>
        </div>
      )}
      {decision !== undefined && (
        <p className="decided">
          {DECIDED[decision.type]}
          <button type="button" className="quiet" onClick={() => onDecide(undefined)}>
            Change
          </button>
        </p>
      )}
    </section>
  );
}

const DECIDED = { approve: "Approved", edit: "Approved with changes", reject: "Rejected" };

/** A field for each argument. Whether they fit says the server. */
function EditForm({
  args,
  onEdit,
  onCancel,
}: {
  args: Args;
  onEdit: (args: Args) => void;
  onCancel: () => void;
}) {
  function send(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    onEdit(
      Object.fromEntries(
        Object.entries(args).map(([name, old]) => [name, readArgument(String(given.get(name)), old)]),
      ),
    );
  }
  return (
    <form onSubmit={send}>
      {Object.entries(args).map(([name, value]) => (
        <label key={name}>
          {name}
          <input
            name={name}
            autoFocus={name === Object.keys(args)[0]}
            defaultValue={typeof value === "string" ? value : JSON.stringify(value)}
          />
        </label>
      ))}
      <div className="buttons">
        <button type="submit" className="main">
          Approve with changes
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** The value of a field: text where there was text, else JSON. */
function readArgument(text: string, old: unknown): unknown {
  if (typeof old === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function RejectForm({ onReject, onCancel }: { onReject: (message?: string) => void; onCancel: () => void }) {
  const [message, setMessage] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onReject(message.trim() || undefined);
      }}
    >
      <label>
        Why? The assistant is told.
        <input value={message} autoFocus onChange={(event) => setMessage(event.target.value)} />
      </label>
      <div className="buttons">
        <button type="submit" className="main">
          Reject
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

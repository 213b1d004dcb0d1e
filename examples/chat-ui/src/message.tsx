/** One message: of the person, who may change it, or of the model, with the tools that it calls. */
import type { AIMessage, Message, ToolMessage } from "@langchain/langgraph-sdk";
import type { MessageMetadata } from "@langchain/langgraph-sdk/react";
import { useState } from "react";
import { sendOnEnter } from "./composer.tsx";

type Props = {
  message: Message;
  metadata: MessageMetadata<Record<string, unknown>> | undefined;
  results: ToolMessage[]; // of all calls of the chat
  isBusy: boolean;
  onEdit: (text: string) => void;
  onBranch: (branch: string) => void;
};

export function Said({ message, results, ...rest }: Props) {
  if (message.type === "human") return <Person text={readText(message)} {...rest} />;
  const calls = (message as AIMessage).tool_calls ?? [];
  return (
    <div className="model">
      {readText(message)}
      {calls.map((call) => (
        <Call key={call.id} call={call} result={results.find((one) => one.tool_call_id === call.id)} />
      ))}
    </div>
  );
}

type CallProps = { call: { name: string; args: object }; result: ToolMessage | undefined };

/** A call of a tool, and what has come of it. */
function Call({ call, result }: CallProps) {
  const args = Object.values(call.args).map((value) => JSON.stringify(value));
  const sign = result === undefined ? "…" : result.status === "error" ? "✗" : "✓";
  return (
    <div className="call">
      <span>{sign}</span>
      <code>
        {call.name}({args.join(", ")})
      </code>
      {result && <p>{readText(result)}</p>}
    </div>
  );
}

type PersonProps = Omit<Props, "message" | "results"> & { text: string };

/** What the person has said. Another text in its place begins another branch of the chat. */
function Person({ text, metadata, isBusy, onEdit, onBranch }: PersonProps) {
  const [draft, setDraft] = useState<string>();
  if (draft === undefined) {
    return (
      <div className="person">
        <p>{text}</p>
        <div className="below">
          <Branches metadata={metadata} isBusy={isBusy} onBranch={onBranch} />
          <button type="button" className="quiet" disabled={isBusy} onClick={() => setDraft(text)}>
            Edit
          </button>
        </div>
      </div>
    );
  }

  function send() {
    setDraft(undefined);
    if (draft?.trim()) onEdit(draft.trim());
  }

  return (
    <div className="person editing">
      <textarea
        aria-label="Change the message"
        autoFocus
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => sendOnEnter(event, send)}
      />
      <div className="buttons">
        <button type="button" onClick={() => setDraft(undefined)}>
          Cancel
        </button>
        <button type="button" className="main" onClick={send}>
          Send
        </button>
      </div>
    </div>
  );
}

/** Which of its branches a chat shows here, if it has several. */
function Branches({ metadata, isBusy, onBranch }: Pick<Props, "metadata" | "isBusy" | "onBranch">) {
  const { branch, branchOptions: options } = metadata ?? {};
  if (branch === undefined || options === undefined) return null;
  const index = options.indexOf(branch);
  const step = (label: string, sign: string, to: string | undefined) => (
    <button
      type="button"
      className="quiet"
      aria-label={label}
      disabled={isBusy || to === undefined}
      onClick={() => to !== undefined && onBranch(to)}
    >
      {sign}
    </button>
  );
  return (
    <span className="branches">
      {step("Earlier version", "‹", options[index - 1])}
      {index + 1} / {options.length}
      {step("Later version", "›", options[index + 1])}
    </span>
  );
}

/** The text of a message, whose content may have several parts. */
function readText({ content }: Message): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

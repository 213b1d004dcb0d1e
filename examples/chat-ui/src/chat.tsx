/** The chat: useStream of LangGraph's SDK, with graphd as its server. */
import type { Message, ToolMessage } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useEffect, useRef, useState } from "react";
import { Composer } from "./composer.tsx";
import { readDetail } from "./errors.ts";
import { Said } from "./message.tsx";
import { type Question, Questions } from "./question.tsx";

/** The URL of graphd, which serve.mjs sets. */
declare const GRAPHD_URL: string;

type State = { messages: Message[] };

const EXAMPLES = [
  "My order 4711 arrived broken",
  "Orders 12 and 13 never arrived, please give me my money back",
];

/** The chat has its thread in the address, so that a page that is loaded again goes on with it. */
const readThread = () => new URLSearchParams(location.search).get("thread");

export function Chat() {
  const [threadId, setThreadId] = useState(readThread);
  const stream = useStream<State, { InterruptType: Question }>({
    apiUrl: GRAPHD_URL,
    assistantId: "shop-agent",
    threadId,
    onThreadId: (id) => {
      setThreadId(id);
      history.replaceState(null, "", `?thread=${id}`);
    },
    reconnectOnMount: true, // a page that is loaded in the middle of a run goes on with its stream
    fetchStateHistory: { limit: 100 }, // branches are made of it
  });
  const { messages, interrupts, isLoading, error } = stream;
  const questions = isLoading ? [] : interrupts.filter((one) => one.value !== undefined);
  const results = messages.filter((one): one is ToolMessage => one.type === "tool");
  const end = useEnd(messages.length + questions.length, messages.at(-1)?.content);

  /** Sends a text: behind all messages, or in place of one of them, from the checkpoint before it. */
  function say(text: string, replaced = messages.length) {
    const message: Message = { id: crypto.randomUUID(), type: "human", content: text };
    const old = messages[replaced];
    const checkpoint = old && stream.getMessagesMetadata(old, replaced)?.firstSeenState?.parent_checkpoint;
    stream.submit(
      { messages: [message] },
      { checkpoint, optimisticValues: { messages: [...messages.slice(0, replaced), message] } },
    );
  }

  return (
    <>
      <header>
        <h1>Shop assistant</h1>
        <button type="button" className="quiet" disabled={!threadId} onClick={() => location.assign("?")}>
          New chat
        </button>
      </header>
      <main aria-live="polite" aria-busy={isLoading}>
        {messages.length === 0 && !isLoading && !stream.isThreadLoading && <Welcome onChoose={say} />}
        {messages.map(
          (message, index) =>
            message.type !== "tool" && (
              <Said
                key={message.id ?? index}
                message={message}
                results={results}
                metadata={stream.getMessagesMetadata(message, index)}
                isBusy={isLoading}
                onEdit={(text) => say(text, index)}
                onBranch={stream.setBranch}
              />
            ),
        )}
        {isLoading && <p className="working">{describeWork(messages)}</p>}
        {questions.length > 0 && (
          <Questions
            key={questions.map((one) => one.id).join()}
            questions={questions}
            refusal={readDetail(error)}
            onAnswer={(resume) => stream.submit(undefined, { command: { resume } })}
          />
        )}
        {error !== undefined && questions.length === 0 && <p role="alert">{readDetail(error)}</p>}
        <div ref={end} />
      </main>
      <Composer isBusy={isLoading} isAsked={questions.length > 0} onSay={say} onStop={stream.stop} />
    </>
  );
}

function Welcome({ onChoose }: { onChoose: (text: string) => void }) {
  return (
    <section className="welcome">
      <h2>What can I do for you?</h2>
      <p>I look up orders on my own. Before I give money back, a person decides.</p>
      {EXAMPLES.map((text) => (
        <button type="button" key={text} onClick={() => onChoose(text)}>
          {text}
        </button>
      ))}
    </section>
  );
}

/** Says that something is going on, as long as no words come. */
const describeWork = (messages: Message[]) => (messages.at(-1)?.type === "ai" ? "…" : "Thinking …");

/** An element that is kept in sight while the chat grows: in number, and in the text of the last message. */
function useEnd(count: number, text: unknown) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [count, text]);
  return end;
}

// useStream of @langchain/react, the React hook that speaks protocol v2: commands, and the events of a thread.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { useStream } from "@langchain/react";
import { createElement } from "react";
import { act, create } from "react-test-renderer";
import { startServer } from "./server.mjs";

let server;
before(async () => {
  globalThis.IS_REACT_ACT_ENVIRONMENT = true;
  server = await startServer();
});
after(() => server.stop());

/** Renders the hook, and returns what it shows. */
async function render(options) {
  const shown = {};
  function Chat() {
    Object.assign(shown, { stream: useStream({ apiUrl: server.url, assistantId: "chat", ...options }) });
    return null;
  }
  let root;
  await act(async () => {
    root = create(createElement(Chat));
  });
  return { shown, unmount: () => act(async () => root.unmount()) };
}

/** Waits until what the hook shows is as wanted. */
async function until(shown, isReached) {
  const end = Date.now() + 60_000;
  while (!isReached(shown.stream)) {
    if (Date.now() > end) {
      throw new Error(`the hook shows ${JSON.stringify([shown.stream.values, shown.stream.interrupts, shown.stream.isLoading])}, ${shown.stream.error}`);
    }
    await act(() => new Promise((done) => setTimeout(done, 10)));
  }
}

const text = (stream) => stream.messages.map((m) => `${m.type}: ${m.content}`);

test("submit, question, reload, answer, edit", async () => {
  let threadId;
  const first = await render({ onThreadId: (id) => (threadId = id) });
  await act(async () => {
    await first.shown.stream.submit({ messages: [{ type: "human", content: "hi" }] });
  });
  await until(first.shown, (s) => !s.isLoading && s.interrupt !== undefined && s.messages.length === 2);
  assert.equal(first.shown.stream.interrupt.value.question, "Send it?");
  assert.deepEqual(text(first.shown.stream), ["human: hi", "ai: You said: hi"]);
  await first.unmount();

  const { shown, unmount } = await render({ threadId });
  await until(shown, (s) => s.interrupt !== undefined && s.messages.length === 2);
  await act(async () => {
    await shown.stream.respond("yes", { interruptId: shown.stream.interrupt.id }); // the question is of the state: its event may still be on the way
  });
  await until(shown, (s) => !s.isLoading && s.messages.length === 3);
  assert.deepEqual(text(shown.stream), ["human: hi", "ai: You said: hi", "ai: decided: yes"]);
  assert.equal(shown.stream.interrupt, undefined);
  await unmount();

  const again = await render({ threadId });
  await until(again.shown, (s) => !s.isLoading && s.messages.length === 3);
  assert.equal(again.shown.stream.interrupt, undefined, "an answered question is not asked again");

  const headers = { "content-type": "application/json" };
  const answered = await fetch(`${server.url}/threads/${threadId}/history`, { method: "POST", headers, body: '{"limit": 100}' });
  const beginning = (await answered.json()).at(-1);
  await act(async () => {
    await again.shown.stream.submit(
      { messages: [{ type: "human", content: "bye" }] },
      { forkFrom: beginning.checkpoint.checkpoint_id },
    );
  });
  await until(again.shown, (s) => !s.isLoading && s.interrupt !== undefined && s.messages.length === 2);
  assert.deepEqual(text(again.shown.stream), ["human: bye", "ai: You said: bye"]);
  await again.unmount();
});

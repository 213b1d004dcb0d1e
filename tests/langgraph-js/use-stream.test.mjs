// useStream, the React hook of LangGraph Server, in two major versions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
async function render(useStream, options) {
  const shown = {};
  function Chat() {
    Object.assign(shown, { stream: useStream({ apiUrl: server.url, assistantId: "chat", fetchStateHistory: true, ...options }) });
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
    if (Date.now() > end) throw new Error(`the hook shows ${JSON.stringify(shown.stream.values)}, ${shown.stream.error}`);
    await act(() => new Promise((done) => setTimeout(done, 10)));
  }
}

const text = (stream) => stream.messages.map((m) => `${m.type}: ${m.content}`);

for (const version of ["sdk-1", "sdk-2"]) {
  test(`${version}: submit, question, answer, reload, edit`, async () => {
    const { useStream } = await import(`${version}/react`);
    let threadId;
    const first = await render(useStream, { onThreadId: (id) => (threadId = id) });
    await act(async () => {
      await first.shown.stream.submit({ messages: [{ type: "human", content: "hi" }] });
    });
    await until(first.shown, (s) => !s.isLoading && s.interrupt !== undefined);
    assert.equal(first.shown.stream.interrupt.value.question, "Send it?");
    assert.deepEqual(text(first.shown.stream), ["human: hi", "ai: You said: hi"]);
    await first.unmount();

    const { shown, unmount } = await render(useStream, { threadId });
    await until(shown, (s) => s.interrupt !== undefined);
    await act(async () => {
      await shown.stream.submit(undefined, { command: { resume: "yes" } });
    });
    await until(shown, (s) => !s.isLoading && s.messages.length === 3);
    assert.deepEqual(text(shown.stream), ["human: hi", "ai: You said: hi", "ai: decided: yes"]);
    assert.equal(shown.stream.interrupt, undefined);

    const checkpoint = shown.stream.getMessagesMetadata(shown.stream.messages[0])?.firstSeenState?.parent_checkpoint;
    await act(async () => {
      await shown.stream.submit({ messages: [{ type: "human", content: "bye" }] }, { checkpoint });
    });
    await until(shown, (s) => !s.isLoading && s.interrupt !== undefined);
    assert.deepEqual(text(shown.stream), ["human: bye", "ai: You said: bye"]);
    await unmount();
  });
}

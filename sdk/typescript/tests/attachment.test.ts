import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { Attachment } from "../src/compiled/attachment.js";
import { Annotation, GraphRecursionError, ServerUnavailableError, START, StateGraph } from "../src/index.js";

const State = Annotation.Root({ n: Annotation<number> });

test("a worker whose server never answers leaves, so that its process can end", async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const graph = new StateGraph(State)
    .addNode("one", () => ({ n: 1 }))
    .addEdge(START, "one")
    .compile();
  const attachment = new Attachment(graph.program, address, undefined, true);
  const release = attachment.hold();
  const failed = attachment.untilReady(10);
  await expect(failed).rejects.toThrow(ServerUnavailableError);
  await expect(failed).rejects.toThrow(`no graphd answered at ${address} within 0.01 s`);
  expect(attachment.isOver).toBe(false); // the call has not ended
  release();
  await attachment.untilClosed();
  expect(attachment.isOver).toBe(true);
  silent.close();
});

test("errors have a code of LangGraph or none", () => {
  expect(Object.keys(new ServerUnavailableError("away"))).not.toContain("lc_error_code");
  expect(new GraphRecursionError("too long").lc_error_code).toBe("GRAPH_RECURSION_LIMIT");
});

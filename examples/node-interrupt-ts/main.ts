/** An approval in a node, and what goes wrong around questions. */
import { Command, interrupt, MemorySaver, START, StateGraph } from "graphd";

const checkpointer = new MemorySaver();
const channels = { count: { value: (x: number, y: number) => x + y, default: () => 0 } };

/** A graph of one node. */
function build(node: (state: { count: number }) => { count: number }) {
  return new StateGraph({ channels }).addNode("node", node).addEdge(START, "node").compile({ checkpointer });
}

const approving = build((state) => {
  console.log(`asking at ${state.count}`);
  const answer = interrupt("Count one more?");
  if (answer !== "Approved") return { count: 0 };
  console.log("✅ approved");
  return { count: 1 };
});
const config = { configurable: { thread_id: "approval" } };
await approving.invoke({ count: 1 }, config);
console.log(await approving.invoke(new Command({ resume: "Approved" }), config));

// A branch that is drawn anew when the node runs again: an answer must not go to another question.
const draws = [0.9, 0.1];
const drawing = build(() => {
  const options = { reason: "approval" };
  if ((draws.shift() ?? Math.random()) > 0.5) interrupt("A", options);
  return { count: interrupt("B", options) === "Approved" ? 1 : 0 };
});
const other = { configurable: { thread_id: "drawn" } };
await drawing.invoke({ count: 0 }, other);
await drawing.invoke(new Command({ resume: "Approved" }), other).catch((error: Error) => console.log(error.name));

// What JSON can't hold is refused, and the error says what to write in its place.
const mapping = build(() => ({ count: interrupt(new Map([["a", 1]])) }));
await mapping
  .invoke({ count: 0 }, { configurable: { thread_id: "map" } })
  .catch((error: Error) => console.log(error.message.includes("Object.fromEntries(map)")));

// An integer beyond 2^53 is stored as it is. Read without a schema like z.bigint() it is an error, not another number.
const large = build(() => ({ count: 0, ...(interrupt({ id: 2n ** 60n }) as object) }));
const asked = await large.invoke({ count: 0 }, { configurable: { thread_id: "large" } }).catch((error: Error) => error);
console.log(asked instanceof Error ? asked.message.includes("1152921504606846976") : "lost");

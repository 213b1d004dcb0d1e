import { Annotation, interrupt, MemorySaver, START, StateGraph } from "graphd";
import { Command, createClient, isGraphdError } from "graphd/client";
import { dev } from "graphd/dev";
import { createBrowserClient } from "graphd/web";

const GRAPH = `
graph: packed
channels: { request: {}, decision: {}, log: { reducer: append } }
input: [request]
nodes:
  read: { expr: { update: { log: ["'read ' + state.request"] } } }
  review: { ask: { value: state.request, update: { decision: answer, log: ["'review'"] } } }
  close: { expr: { update: { log: ["'closed: ' + state.decision"] } } }
edges: [START -> read -> review -> close -> END]
`;

// Two questions in one node of this process, on a local server.
async function askAge() {
  const State = Annotation.Root({ text: Annotation });
  const graph = new StateGraph(State)
    .addNode("ask", () => ({ text: `User ${interrupt("name?")} is ${interrupt("age?")} years old.` }))
    .addEdge(START, "ask")
    .compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "1" } };
  await graph.invoke({ text: "" }, config);
  await graph.invoke(new Command({ resume: "Alice" }), config);
  return (await graph.invoke(new Command({ resume: "25" }), config)).text;
}

async function main() {
  const server = await dev();
  const client = createClient(server.address);
  await client.putGraph(GRAPH);
  const config = { configurable: { thread_id: "packed" } };
  const asked = await client.invoke("packed", { request: "3 EUR" }, config);
  if (!asked.__interrupt__ || !createBrowserClient) throw new Error("something is missing");
  const { log } = await client.invoke("packed", new Command({ resume: "approved" }), config);
  const refused = await client.getRun("packed", "none").catch((error) => error);
  if (!isGraphdError(refused, "RUN_NOT_FOUND")) throw refused;
  if ((await askAge()) !== "User Alice is 25 years old.") throw new Error("the graph says something else");
  console.log(`log: ${log.join(", ")}`);
  // The process ends by itself: neither the connection nor the server holds it.
}

main();

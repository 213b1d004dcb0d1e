import { GraphdError } from "graphd";
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

async function main() {
  const server = await dev();
  const client = createClient(server.address);
  await client.putGraph(GRAPH);
  const config = { configurable: { thread_id: "packed" } };
  const asked = await client.invoke("packed", { request: "3 EUR" }, config);
  if (!asked.__interrupt__ || !createBrowserClient || !GraphdError) throw new Error("something is missing");
  const { log } = await client.invoke("packed", new Command({ resume: "approved" }), config);
  const refused = await client.getRun("packed", "none").catch((error) => error);
  if (!isGraphdError(refused, "RUN_NOT_FOUND")) throw refused;
  console.log(`log: ${log.join(", ")}`);
  // The process ends by itself: neither the connection nor the server holds it.
}

main();

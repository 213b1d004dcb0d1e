/** Nodes of graphs that the server has. */
import { describe, expect, test } from "vitest";
import { Client } from "../src/client/index.js";
import { Annotation, Command, interrupt, START, StateGraph } from "../src/index.js";
import { startServer } from "./server.js";

const FILE = `
graph: orders
channels: { order: {}, log: { reducer: append } }
input: [order]
nodes:
  price: { remote: {} }
  approve: { ask: { value: state.order, update: { log: ["'approved'"] } } }
  ship: { remote: {} }
edges: [START -> price, approve -> ship, ship -> END]
conditional_edges: [{ from: price, router: choose, in_worker: true, then: [approve, ship] }]
`;

const State = Annotation.Root({
  order: Annotation<string>(),
  log: Annotation<string[], string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const started = startServer();

describe("a part of a graph", () => {
  test("two programs serve the nodes of one graph, and each starts its runs", async () => {
    const { server, caller } = started;
    await new Client(caller).putGraph(FILE);
    const pricing = new StateGraph(State)
      .addNode("price", ({ order }) => ({ log: [`price of ${order}`] }))
      .addConditionalEdges("price", function choose({ order }: typeof State.State) {
        return order === "book" ? "approve" : "ship";
      } as never)
      .compile({ partOf: "orders", server: server.address });
    const shipping = new StateGraph(State)
      .addNode("ship", ({ log }) => ({ log: [`shipped after ${log.length} ${interrupt("sure?")}`] }))
      .compile({ partOf: "orders", server: server.address });
    const thread = { configurable: { thread_id: "part" } };
    const asked = await pricing.invoke({ order: "book" }, thread);
    expect(asked).toMatchObject({ log: ["price of book"], __interrupt__: [{ value: "book" }] });
    await shipping.invoke(new Command({ resume: "yes" }), thread);
    const done = await pricing.invoke(new Command({ resume: "yes" }), thread);
    expect(done.log).toEqual(["price of book", "approved", "shipped after 2 yes"]);
    await Promise.all([pricing.detach(), shipping.detach()]);
  });

  test.each([
    [{ name: "x" }, "name is for the server's graph"],
    [{ interruptBefore: ["price"] }, "interruptBefore is for the server's graph"],
    [{ drift: "accept" as const }, "drift is for the server's graph"],
    [{ partOf: "" }, "partOf is empty"],
  ])("%o beside it is refused", (more, problem) => {
    const builder = new StateGraph(State).addNode("price", () => ({}));
    expect(() => builder.compile({ partOf: "orders", ...more })).toThrow(problem);
  });

  test("edges, graphs and error handlers are for the graph to declare", () => {
    const options = { partOf: "orders" };
    const inner = new StateGraph(State)
      .addNode("n", () => ({}))
      .addEdge(START, "n")
      .compile();
    const builders = [
      [new StateGraph(State), "want a node to serve"],
      [new StateGraph(State).addNode("a", () => ({})).addEdge(START, "a"), "leave out addEdge"],
      [new StateGraph(State).addNode("a", inner), 'the graph in node "a"'],
      [
        new StateGraph(State).addNode("a", () => ({}), { errorHandler: () => ({}) }),
        "the error handler of node",
      ],
    ] as const;
    for (const [builder, problem] of builders) expect(() => builder.compile(options)).toThrow(problem);
  });
});

/**
 * The Node process of the benchmark: a worker with a chain of ten trivial nodes, and a bare gRPC service, both as
 * their libraries are used by default. Prints the port of the bare service when both are ready; ends with its input.
 *
 *   node nodes.mjs HOST:PORT FILE      the server, and the built SDK
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const LENGTH = 10;
const [address, sdk] = process.argv.slice(2);
const { Annotation, END, START, StateGraph } = await import(pathToFileURL(sdk));
// The library of the SDK.
const grpc = createRequire(pathToFileURL(sdk))("@grpc/grpc-js");

const bare = new grpc.Server();
const asIs = (bytes) => bytes;
bare.addService(
  {
    call: {
      path: "/bench.Node/Call",
      requestStream: false,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  },
  { call: ({ request }, answer) => answer(null, request) },
);
const port = await new Promise((resolve, reject) => {
  bare.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
    error ? reject(error) : resolve(bound),
  );
});

const names = Array.from({ length: LENGTH }, (_, i) => `n${i}`);
const builder = new StateGraph(Annotation.Root({ x: Annotation() }));
for (const name of names) builder.addNode(name, ({ x }) => ({ x: x + 1 }));
[START, ...names].forEach((source, i) => builder.addEdge(source, names[i] ?? END));
const graph = builder.compile({ server: address, name: "chain-typescript" });
await graph.invoke({ x: 0 }); // the server has the graph
console.log(port);

process.stdin.resume();
process.stdin.on("end", async () => {
  bare.forceShutdown();
  await graph.detach();
});

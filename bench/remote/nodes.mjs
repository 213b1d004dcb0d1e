/**
 * The Node process of the benchmark: a worker with chains of ten trivial nodes, over a small and over a large
 * state, and a bare gRPC service, both as their libraries are used by default. Prints the port of the bare service when both are ready; ends with its input.
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

function chain(name, keys, code) {
  const builder = new StateGraph(Annotation.Root(Object.fromEntries(keys.map((key) => [key, Annotation()]))));
  for (const node of names) builder.addNode(node, code);
  [START, ...names].forEach((source, i) => builder.addEdge(source, names[i] ?? END));
  return builder.compile({ server: address, name });
}

const graphs = [
  chain("chain-typescript", ["x"], ({ x }) => ({ x: x + 1 })),
  chain("large-typescript", ["x", "documents"], ({ x, documents }) => {
    if (documents.length === 0) throw new Error("the documents are missing");
    return { x: x + 1 };
  }),
];
const inputs = [{ x: 0 }, { x: 0, documents: [{}] }];
for (const [i, graph] of graphs.entries()) await graph.invoke(inputs[i]); // the server has the graphs
console.log(port);

process.stdin.resume();
process.stdin.on("end", async () => {
  bare.forceShutdown();
  for (const graph of graphs) await graph.detach();
});

// A graphd of the tests, with the graphs of this folder.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Starts a server; returns its URL, and a function that ends it. */
export async function startServer() {
  const program = process.env.GRAPHD_BIN;
  const flags = ["serve", "--until-input-ends", "--listen", "127.0.0.1:0", "--store", "memory", "--langgraph", "127.0.0.1:0", "--log-format", "json"];
  const graphs = new URL("graphs", import.meta.url).pathname;
  const child = spawn(program, [...flags, "--graphs", graphs], { stdio: ["pipe", "ignore", "pipe"] });
  for await (const line of createInterface({ input: child.stderr })) {
    const { langgraph } = JSON.parse(line);
    if (langgraph?.startsWith("http")) {
      child.stderr.resume();
      const stop = async () => {
        child.stdin.end();
        await once(child, "exit");
      };
      return { url: langgraph, stop };
    }
  }
  throw new Error("graphd ended at once");
}

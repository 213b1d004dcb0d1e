/** Serves a page on which people chat with the agent. Needs a graphd: GRAPHD_SERVER, or the one of this machine. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Command, isGraphdError } from "graphd";
import { compileAgent } from "./agent.ts";

const agent = compileAgent(process.env.GRAPHD_SERVER ?? "127.0.0.1:7700");
const page = readFileSync(new URL("./page.html", import.meta.url));

type Turn = { thread: string; text?: string; answers?: Record<string, unknown> };

const server = createServer((request, response) => {
  if (request.method !== "POST") {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(page);
    return;
  }
  takeTurn(request, response).catch((error: unknown) => {
    send(response, "problem", isGraphdError(error) ? error.reason || error.message : String(error));
    response.end();
  });
});

/** A text or the answers of a person; what comes of it is sent as it happens. */
async function takeTurn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { thread, text, answers } = (await readJson(request)) as Turn;
  response.setHeader("Content-Type", "text/event-stream");
  const input =
    answers === undefined
      ? { messages: [{ role: "user", content: text ?? "" }] }
      : new Command({ resume: answers });
  const config = { configurable: { thread_id: thread } };
  const stream = await agent.stream(input as never, {
    ...config,
    streamMode: ["messages", "updates"] as const,
  });
  for await (const [mode, data] of stream as AsyncIterable<[string, any]>) {
    if (mode === "messages" && data[1].langgraph_node === "model") send(response, "token", data[0].content);
    if (mode === "updates" && data.__interrupt__) {
      for (const question of data.__interrupt__) send(response, "question", question);
    }
  }
  send(response, "end", null);
  response.end();
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString());
}

function send(response: ServerResponse, event: string, data: unknown): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

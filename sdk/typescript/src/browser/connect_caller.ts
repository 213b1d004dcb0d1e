/** Calls over HTTP by the protocol of Connect, which browsers can make. */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { Caller, CallOptions } from "../calls/index.js";
import { isGraphdError, ServerUnavailableError } from "../errors/index.js";
import { createHttpError, createNetworkError, readConnectError } from "./connect_errors.js";
import { LAST, readEnvelopes, wrapMessage } from "./envelopes.js";

export type BrowserOptions = {
  /** Where the server serves HTTP, like `https://graphd.example.com`; the site of the page when it is left out. */
  baseUrl?: string;
  /** Sent with each call. Without it the session of the browser counts. */
  token?: string | (() => string | Promise<string>);
  /** The tenant in which calls are made. */
  tenant?: string;
  /** In place of the `fetch` of the browser. */
  fetch?: typeof fetch;
};

const PROTO = "application/proto";
const STREAM = "application/connect+proto";

export class ConnectCaller implements Caller {
  hasAnswered = false;
  private readonly baseUrl: string;

  constructor(private readonly options: BrowserOptions = {}) {
    this.baseUrl = (options.baseUrl ?? "").replace(/\/$/, "");
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const message = toBinary(method.input, create(method.input, request));
    const response = await this.post(method, PROTO, new Uint8Array(message), options);
    const body = await response.arrayBuffer().catch((error: unknown) => {
      throw options.signal?.aborted ? options.signal.reason : createNetworkError(error);
    });
    return fromBinary(method.output, new Uint8Array(body));
  }

  async *serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const message = toBinary(method.input, create(method.input, request));
    const response = await this.post(method, STREAM, wrapMessage(message), options);
    try {
      for await (const { flags, bytes } of readEnvelopes(bodyOf(response))) {
        if ((flags & LAST) === 0) {
          yield fromBinary(method.output, bytes);
          continue;
        }
        const { error } = JSON.parse(new TextDecoder().decode(bytes)) as { error?: object };
        if (error !== undefined) throw readConnectError(error);
        return;
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw isGraphdError(error) ? error : createNetworkError(error);
    }
    throw new ServerUnavailableError("the stream has broken off", { code: "UNAVAILABLE" });
  }

  private async post(
    method: DescMethod,
    contentType: string,
    body: Uint8Array<ArrayBuffer>,
    { signal, deadline }: CallOptions,
  ): Promise<Response> {
    const headers = await this.createHeaders(contentType);
    if (deadline !== undefined)
      headers["Connect-Timeout-Ms"] = String(Math.max(1, deadline.end - Date.now()));
    const url = `${this.baseUrl}/${method.parent.typeName}/${method.name}`;
    const send = this.options.fetch ?? fetch;
    const response = await send(url, { method: "POST", headers, body, signal: signal ?? null }).catch(
      (error) => {
        throw signal?.aborted ? signal.reason : createNetworkError(error);
      },
    );
    if (!response.ok) {
      const refusal = await readRefusal(response);
      this.hasAnswered ||= isGraphdError(refusal) && refusal.serverReason !== ""; // else it is a proxy's
      throw refusal;
    }
    this.hasAnswered = true;
    return response;
  }

  private async createHeaders(contentType: string): Promise<Record<string, string>> {
    const { token, tenant } = this.options;
    const read = typeof token === "function" ? await token() : token;
    return {
      "Content-Type": contentType,
      "Connect-Protocol-Version": "1",
      ...(read ? { Authorization: `Bearer ${read}` } : {}),
      ...(tenant ? { "Graphd-Tenant": tenant } : {}),
    };
  }
}

async function readRefusal(response: Response) {
  const body: unknown = await response.json().catch(() => undefined);
  const isError = typeof body === "object" && body !== null && "code" in body;
  return isError ? readConnectError(body as object) : createHttpError(response.status);
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (response.body === null) throw createHttpError(response.status);
  return response.body;
}

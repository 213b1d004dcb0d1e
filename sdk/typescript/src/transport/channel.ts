import { type ChannelCredentials, type ChannelOptions, Client, Metadata } from "@grpc/grpc-js";
import { readTrace, type TraceCarrier } from "../spans/index.js";
import { checkTarget } from "./address.js";
import { CertificateFiles } from "./certificates.js";
import type { ResolvedSecurity } from "./security.js";
import { openToken, type ReadToken } from "./token.js";

const OPTIONS: ChannelOptions = {
  // Servers have limits of their own, and say so in errors with a reason.
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  // A server that restarts is found again soon.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  // Pings show that a silent connection is gone; its streams go on at another. Servers permit one in 10 s.
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
};

/** One server as it has to be called. Nothing is sent before the first call. */
export class Channel {
  private readonly files: CertificateFiles;
  private readonly readToken: ReadToken | undefined;
  private readonly tenant: string;
  private readonly options: ChannelOptions;
  private opened: { client: Client; credentials: ChannelCredentials } | undefined;

  constructor(
    readonly address: string,
    security: ResolvedSecurity,
  ) {
    checkTarget(address, security);
    this.files = new CertificateFiles(security);
    this.readToken = openToken(security);
    this.tenant = security.tenant;
    // A proxy could read what goes to this host in plain text.
    const ownHost = this.readToken !== undefined && !security.usesTls;
    this.options = ownHost ? { ...OPTIONS, "grpc.enable_http_proxy": 0 } : OPTIONS;
  }

  /** The connection, a new one when there are new certificates. Calls of the one before end in order. */
  get client(): Client {
    const credentials = this.files.current();
    if (this.opened?.credentials !== credentials) {
      this.opened?.client.close();
      this.opened = { client: new Client(this.address, credentials, this.options), credentials };
    }
    return this.opened.client;
  }

  /** The headers of a call, which say who calls, in which tenant and in which trace. */
  readHeaders(): Metadata | Promise<Metadata> {
    const trace = readTrace();
    const token = this.readToken?.();
    if (!(trace instanceof Promise) && !(token instanceof Promise)) return this.createHeaders(token, trace);
    return Promise.all([token, trace]).then(([read, carrier]) => this.createHeaders(read, carrier));
  }

  close(): void {
    this.opened?.client.close();
    this.opened = undefined;
  }

  private createHeaders(token: string | undefined, trace: TraceCarrier): Metadata {
    const headers = new Metadata();
    for (const [name, value] of Object.entries(trace)) headers.set(name, value);
    if (this.tenant) headers.set("graphd-tenant", this.tenant);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    return headers;
  }
}

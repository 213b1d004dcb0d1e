import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type CallOptions as GrpcOptions, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { CallOptions, Duplex, DuplexCaller, DuplexListener } from "../calls/index.js";
import { isGraphdError } from "../errors/index.js";
import { toCallError, toGraphdError } from "./call_errors.js";
import type { Channel } from "./channel.js";
import { GrpcDuplex } from "./grpc_duplex.js";
import { MessageQueue } from "./message_queue.js";

/** Calls over gRPC. Methods are bound by their descriptors. */
export class GrpcCaller implements DuplexCaller {
  private answered = false;

  constructor(private readonly channel: Channel) {}

  /** The server, for people. */
  get address(): string {
    return this.channel.address;
  }

  get hasAnswered(): boolean {
    return this.answered;
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const { signal } = options;
    signal?.throwIfAborted();
    const headers = this.channel.readHeaders();
    const metadata = headers instanceof Metadata ? headers : await headers;
    return await new Promise<MessageShape<O>>((resolve, reject) => {
      const call = this.channel.client.makeUnaryRequest(
        pathOf(method),
        (message: MessageShape<I>) => encodeMessage(method.input, message),
        (bytes: Buffer) => fromBinary(method.output, bytes),
        create(method.input, request),
        metadata,
        toGrpcOptions(options),
        (error: ServiceError | null, answer?: MessageShape<O>) => {
          signal?.removeEventListener("abort", stop);
          if (error === null) {
            this.answered = true;
            resolve(answer as MessageShape<O>);
          } else
            reject(
              signal?.aborted
                ? (signal.reason as Error)
                : this.noteProblem(toGraphdError(error, this.address)),
            );
        },
      );
      const stop = () => call.cancel();
      signal?.addEventListener("abort", stop, { once: true });
    });
  }

  async *serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const { signal } = options;
    signal?.throwIfAborted();
    const metadata = await this.channel.readHeaders();
    const call = this.channel.client.makeServerStreamRequest(
      pathOf(method),
      (message: MessageShape<I>) => encodeMessage(method.input, message),
      (bytes: Buffer) => fromBinary(method.output, bytes),
      create(method.input, request),
      metadata,
      toGrpcOptions(options),
    );
    const queue = new MessageQueue<MessageShape<O>>(call);
    call.on("data", (message: MessageShape<O>) => {
      this.answered = true;
      queue.add(message);
    });
    call.on("end", () => queue.end());
    call.on("error", (error) => queue.end(this.noteProblem(toCallError(error, this.address))));
    const stop = () => {
      queue.end(signal?.reason as Error);
      call.cancel();
    };
    signal?.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        const { done, value } = await queue.next();
        if (done) return;
        yield value;
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      call.cancel();
    }
  }

  openDuplex<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    listener: DuplexListener<O>,
  ): Duplex<I> {
    const duplex = new GrpcDuplex(method, listener);
    const open = (metadata: Metadata) =>
      duplex.attach(
        this.channel.client.makeBidiStreamRequest(
          pathOf(method),
          (message: MessageShape<I>) => encodeMessage(method.input, message),
          (bytes: Buffer) => fromBinary(method.output, bytes),
          metadata,
          {},
        ),
      );
    const headers = this.channel.readHeaders();
    if (headers instanceof Metadata) open(headers);
    else headers.then(open, (error: Error) => duplex.finish(error));
    return duplex;
  }

  /** A problem with a reason comes from the server. */
  private noteProblem<E extends Error>(problem: E): E {
    this.answered ||= isGraphdError(problem) && problem.serverReason !== "";
    return problem;
  }

  /** Closes the connection, when no call is under way any more. */
  close(): void {
    this.channel.close();
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encodeMessage<D extends DescMessage>(schema: D, message: MessageShape<D>): Buffer {
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function toGrpcOptions({ deadline }: CallOptions): GrpcOptions {
  return deadline === undefined ? {} : { deadline: deadline.end };
}

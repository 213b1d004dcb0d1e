import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import type { Duplex, DuplexListener } from "../calls/index.js";
import { toCallError } from "./call_errors.js";

type Stream<I extends DescMessage, O extends DescMessage> = ClientDuplexStream<
  MessageShape<I>,
  MessageShape<O>
>;

/** A stream in both directions, which opens once the headers of the call are known. */
export class GrpcDuplex<I extends DescMessage, O extends DescMessage> implements Duplex<I> {
  private stream: Stream<I, O> | undefined;
  private readonly early: MessageInitShape<I>[] = [];
  private endsEarly = false;
  private isOver = false;

  constructor(
    private readonly method: DescMethodBiDiStreaming<I, O>,
    private readonly listener: DuplexListener<O>,
  ) {}

  /** Takes the stream into use. */
  attach(stream: Stream<I, O>): void {
    if (this.isOver) {
      stream.on("error", () => {});
      stream.cancel();
      return;
    }
    this.stream = stream;
    stream.on("data", (message: MessageShape<O>) => this.listener.onMessage(message));
    stream.on("end", () => this.finish());
    stream.on("error", (error) => this.finish(toCallError(error)));
    for (const message of this.early.splice(0)) this.send(message);
    if (this.endsEarly) stream.end();
  }

  send(message: MessageInitShape<I>): void {
    if (this.stream === undefined) this.early.push(message);
    else this.stream.write(create(this.method.input, message));
  }

  end(): void {
    if (this.stream === undefined) this.endsEarly = true;
    else this.stream.end();
  }

  cancel(): void {
    if (this.stream === undefined) this.finish(new Error("the stream was cancelled before it was opened"));
    else this.stream.cancel();
  }

  /** Tells the listener, once. */
  finish(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.listener.onEnd(error);
  }
}

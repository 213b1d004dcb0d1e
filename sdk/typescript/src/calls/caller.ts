import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Deadline } from "./deadline.js";

export type CallOptions = {
  /** When the call must have ended. */
  deadline?: Deadline | undefined;
  /** Ends the call; it then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
};

/** Makes calls to one server. Errors of calls are of the classes of `GraphdError`. */
export interface Caller {
  /** The server has answered a call, be it by a refusal. One that was there may be away for longer than one that never was. */
  readonly hasAnswered: boolean;

  /** A call with one answer. It is made once: see `callRepeatedly`. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>>;

  /** A call with a stream of answers. Leaving the iteration ends it. */
  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): AsyncIterable<MessageShape<O>>;
}

/** What a stream in both directions tells. */
export type DuplexListener<O extends DescMessage> = {
  onMessage(message: MessageShape<O>): void;
  /** Called once, without an error when the server has ended the stream in order. */
  onEnd(error?: Error): void;
};

export interface Duplex<I extends DescMessage> {
  send(message: MessageInitShape<I>): void;
  /** Says that no more messages follow. */
  end(): void;
  /** Breaks the stream off; `onEnd` is called with an error. */
  cancel(): void;
}

/** A caller that can stream in both directions, as workers do. */
export interface DuplexCaller extends Caller {
  openDuplex<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    listener: DuplexListener<O>,
  ): Duplex<I>;
}

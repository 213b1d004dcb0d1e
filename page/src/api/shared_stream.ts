// A stream that the tabs of a browser share: one reads it, and tells the others. A browser opens six
// connections of HTTP/1.1 to a server, and each stream occupies one.

import type { Connection } from "./connection";
import { pause, runWhileSeen } from "./seen";

/** What a tab does with the stream. */
export interface Follower<Message> {
  /** Opens the stream after a token; "" begins with what is new. */
  open: (token: string, signal: AbortSignal) => AsyncIterable<Message>;
  /** Takes messages in their order, undefined for none. Without isNext some before it may be missing. */
  take: (message: Message | undefined, isNext: boolean) => Promise<void>;
  show: (connection: Connection) => void;
  /** Tells whether the stream begins anew after an error. */
  fail: (err: unknown) => Promise<boolean>;
}

/** A message as the tab that reads tells of it, with the tokens before and after it. */
interface Part<Message> {
  before: string;
  token: string;
  message?: Message;
  connection: Connection;
}

const retryAfter = [200, 500, 1000, 2000, 5000];

/** Follows a stream with all tabs that give it the same name. */
export async function followTogether<Message extends { resumeToken?: string }>(name: string, closing: AbortSignal, follower: Follower<Message>): Promise<void> {
  const { locks } = navigator as { locks?: LockManager }; // over plain HTTP only this machine has it
  const channel = locks && new BroadcastChannel(name);
  let token = "";
  let isReader = false;
  let failures = 0;
  let shown: Connection = "connecting";
  const tell = (part: Part<Message> | "where"): void => {
    if (!closing.aborted) channel?.postMessage(part);
  };
  const tellPlace = (): void => tell({ before: token, token, connection: shown });
  const take = async (part: Part<Message>): Promise<void> => {
    const isNext = part.before === token && token !== "";
    ({ token, connection: shown } = part);
    try {
      await follower.take(part.message, isNext);
      follower.show(shown);
    } catch (err) {
      token = "";
      throw err;
    }
  };
  const read = async (signal: AbortSignal): Promise<void> => {
    isReader = true;
    try {
      if (token) tellPlace();
      for await (const message of follower.open(token, signal)) {
        const part: Part<Message> = { before: token, token: message.resumeToken || token, message, connection: "live" };
        tell(part);
        await take(part);
        failures = 0;
      }
    } finally {
      isReader = false;
    }
  };
  const fail = async (err: unknown): Promise<void> => {
    if (closing.aborted) return;
    if (await follower.fail(err)) token = "";
    if (typeof shown === "string") shown = { since: Date.now() };
    follower.show(shown);
  };
  if (channel) {
    closing.addEventListener("abort", () => channel.close());
    channel.onmessage = ({ data }: MessageEvent<Part<Message> | "where">) => {
      if (data !== "where") take(data).catch(async (err: unknown) => {
        await fail(err);
        await pause(retryAfter[2]!, closing);
        tell("where");
      });
      else if (isReader && token) tellPlace();
    };
  }
  tell("where");
  await runWhileSeen(closing, async (signal) => {
    try {
      await (locks ? locks.request(name, { signal }, () => read(signal)) : read(signal));
    } catch (err) {
      if (signal.aborted) return;
      await fail(err);
      tellPlace();
      await pause(retryAfter[Math.min(failures++, retryAfter.length - 1)]!, closing);
    }
  });
}

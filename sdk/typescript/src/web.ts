/** `graphd/web`: what programs in browsers use. It loads no module of Node. */
import { type BrowserOptions, ConnectCaller } from "./browser/index.js";
import { Client } from "./client/index.js";

/** A client that calls the server over HTTP, from a browser. */
export function createBrowserClient(options: BrowserOptions = {}): Client {
  return new Client(new ConnectCaller(options));
}

export type { BrowserOptions } from "./browser/index.js";
export * from "./client/index.js";
export * from "./constants.js";
export * from "./errors/index.js";
export {
  Annotation,
  AnnotationRoot,
  MessagesAnnotation,
  messagesStateReducer,
  type StateType,
  type UpdateType,
} from "./state/index.js";
export * from "./values/index.js";

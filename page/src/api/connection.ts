// Whether what the page shows is what the server has.

import { Store } from "./store";

export type Connection = "connecting" | "live" | { since: number };

/** The state of the stream that is open last. */
export const connection = new Store<Connection>("connecting");

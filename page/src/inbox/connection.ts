// Whether the page is up to date: the state of the stream that is open last.

import { Store } from "../api/store";
import type { Connection } from "./questions";

export const connection = new Store<Connection>("connecting");

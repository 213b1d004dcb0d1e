export { type BrowserOptions, ConnectCaller } from "./connect_caller.js";

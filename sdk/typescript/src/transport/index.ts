export { type ConnectOptions, connect, serverOfEnvironment } from "./connect.js";
export type { GrpcCaller } from "./grpc_caller.js";
export type { Security } from "./security.js";

/** The servers that this process calls, each over one connection; among them the local one. */
import { ThreadService } from "../_gen/graphd/v1/thread_service_pb.js";
import { DevServer } from "../dev/index.js";
import { isGraphdError } from "../errors/index.js";
import { wireThread } from "../names/index.js";
import { connect, type GrpcCaller, type Security } from "../transport/index.js";

let local: Promise<DevServer> | undefined;

/** The server that graphs compiled without an address use together. It ends with this process. */
export async function localServer(): Promise<string> {
  const known = local;
  const server = await known?.catch(() => undefined);
  if (server?.isRunning) return server.address;
  // Of several that find none, the first starts it for all.
  if (local === known) local = DevServer.start();
  return (await (local as Promise<DevServer>)).address;
}

const callers = new Map<string, GrpcCaller>();
const securedCallers = new WeakMap<Security, Map<string, GrpcCaller>>();

/** The connections that are protected in a way of their own, by address. */
function callersWith(security: Security): Map<string, GrpcCaller> {
  const known = securedCallers.get(security) ?? new Map<string, GrpcCaller>();
  securedCallers.set(security, known);
  return known;
}

/** The connection for the calls to a server. */
export function callerOf(address: string, security?: Security): GrpcCaller {
  const known = security === undefined ? callers : callersWith(security);
  const caller = known.get(address) ?? connect(address, security);
  known.set(address, caller);
  return caller;
}

/** Deletes a thread; one that is not there is none to delete. */
export async function deleteThread(address: string, threadId: string, security?: Security): Promise<void> {
  try {
    await callerOf(address, security).unary(ThreadService.method.deleteThread, { threadId, force: true });
  } catch (error) {
    if (!isGraphdError(error, "THREAD_NOT_FOUND")) throw error;
  }
}

/** Deletes a thread of a saver. */
export async function deleteSavedThread(server: string, prefix: string, threadId: string): Promise<void> {
  await deleteThread(server || (await localServer()), wireThread(threadId, prefix));
}

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

/** The connection for the calls to a server. */
export function callerOf(address: string, security?: Security): GrpcCaller {
  if (security !== undefined) return connect(address, security);
  const known = callers.get(address) ?? connect(address);
  callers.set(address, known);
  return known;
}

/** Deletes a thread; one that is not there is none to delete. */
export async function deleteThread(address: string, threadId: string): Promise<void> {
  try {
    await callerOf(address).unary(ThreadService.method.deleteThread, { threadId, force: true });
  } catch (error) {
    if (!isGraphdError(error, "THREAD_NOT_FOUND")) throw error;
  }
}

/** Deletes a thread of a saver. */
export async function deleteSavedThread(server: string, prefix: string, threadId: string): Promise<void> {
  await deleteThread(server || (await localServer()), wireThread(threadId, prefix));
}

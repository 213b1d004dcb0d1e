import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A network that breaks on request: passes TCP connections on to a server. */
export async function startRelay(target: string) {
  const [host = "", port = ""] = target.split(":");
  const links = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), host);
    for (const link of [near, far]) {
      links.add(link);
      link.on("error", () => {});
      link.on("close", () => links.delete(link));
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Breaks the connections that exist. */
    cut: () => {
      for (const link of links) link.destroy();
    },
    close: () => {
      server.close();
      for (const link of links) link.destroy();
    },
  };
}

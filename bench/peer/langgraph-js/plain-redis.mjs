// A client of a Redis without the modules RedisJSON and RediSearch, which
// RedisSaver wants: JSON documents become texts, and no index is kept. That is
// less work than the modules would have.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { createClient } = createRequire(require.resolve("@langchain/langgraph-checkpoint-redis"))("redis");

export async function plainRedis(url) {
  const client = createClient({ url });
  await client.connect();
  const json = {
    get: async (key) => {
      const text = await client.get(key);
      return text === null ? null : JSON.parse(text);
    },
    set: (key, _path, value, options) => client.set(key, JSON.stringify(value), options?.NX ? { NX: true } : {}),
  };
  return new Proxy(client, {
    get: (target, name) => {
      if (name === "json") return json;
      if (name === "ft") return { create: async () => "OK" };
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export { isMemorySaver, MemorySaver } from "./memory_saver.js";
export { InMemoryCache } from "./memory_cache.js";

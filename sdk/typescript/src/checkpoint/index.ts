export { InMemoryCache } from "./memory_cache.js";
export { isMemorySaver, MemorySaver } from "./memory_saver.js";

export { InMemoryStore } from "./memory_store.js";

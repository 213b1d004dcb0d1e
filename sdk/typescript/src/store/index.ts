export { ItemStore, type PutOptions } from "./item_store.js";
export { InMemoryStore } from "./memory_store.js";

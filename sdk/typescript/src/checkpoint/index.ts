export { isMemorySaver, MemorySaver } from "./memory_saver.js";

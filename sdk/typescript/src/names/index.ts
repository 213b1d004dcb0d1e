export {
  findLevels,
  formatNamespace,
  type Levels,
  nodeOfLevel,
  parseNamespace,
  publicLevels,
  taskOfLevel,
} from "./namespaces.js";
export { DEFAULT_HANDLER, handlerName, publicName, wireName } from "./nodes.js";
export { sha256 } from "./sha256.js";
export { publicThread, wireThread } from "./threads.js";

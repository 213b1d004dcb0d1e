/** Types of streams, under the name of their entry in LangGraph.js. */
export type { StateSnapshot, StreamMode, StreamOutputMap } from "../compiled/index.js";

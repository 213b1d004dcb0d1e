export * from "./state_graph.js";

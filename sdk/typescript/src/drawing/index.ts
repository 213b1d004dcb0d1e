export * from "./mermaid.js";

export * from "./command.js";
export type * from "./config.js";
export * from "./interrupt.js";
export * from "./policies.js";
export * from "./question.js";
export type * from "./store.js";

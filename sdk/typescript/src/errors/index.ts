export * from "./base.js";
export * from "./bubble_up.js";
export * from "./by_reason.js";
export * from "./graph_errors.js";
export * from "./graphd_error.js";
export * from "./refused.js";
export * from "./unavailable.js";

export type { Reducer as BinaryOperator } from "./channel.js";
export * from "./channel.js";

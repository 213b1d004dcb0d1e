// The tabs of a thread besides its state, loaded when one of them is opened.

export { Branches } from "./branches";
export { Runs } from "./runs";
export { Timeline } from "./timeline";

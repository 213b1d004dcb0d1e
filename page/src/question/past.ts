// What happened to a question. It is loaded when the first one is shown.

export { CommentBox } from "./comment";
export { RawView } from "./raw";
export { Resolution } from "./resolution";
export { Trail } from "./trail";
export { fetchTrail } from "./trail_entries";

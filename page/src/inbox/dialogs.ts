// What is done with one question or several: loaded when it is opened for the first time.

export { AssignDialog } from "./assign";
export { BulkDialog } from "./bulk";
export { LaterDialog } from "./later_dialog";

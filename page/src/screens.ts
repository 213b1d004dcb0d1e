// The screens that are loaded when one of them is opened.

export { GraphsScreen } from "./graphs/screen";
export { OverviewScreen } from "./overview/screen";
export { ThreadsScreen } from "./thread/screen";
export { WorkersScreen } from "./workers/screen";

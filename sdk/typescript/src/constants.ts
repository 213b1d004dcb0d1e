/** Names that programs, LangGraph.js and the server have in common. */

/** Where a run begins. */
export const START = "__start__";
/** Where a branch of a run ends. */
export const END = "__end__";
/** Key of chunks and results below which the open questions are. */
export const INTERRUPT = "__interrupt__";
/** Key under which a state that is one value is stored. */
export const ROOT = "__root__";
/** In a RemoveMessage: the id that stands for all messages. */
export const REMOVE_ALL_MESSAGES = "__remove_all__";
/** Between the levels of a namespace that is written as one text. */
export const NAMESPACE_SEPARATOR = "|";
/** Between the node and the task of a level. */
export const TASK_SEPARATOR = ":";
/** Tag of a node or model whose events clients do not see. */
export const TAG_HIDDEN = "langsmith:hidden";
/** Tag of a model whose tokens clients do not see. */
export const TAG_NOSTREAM = "langsmith:nostream";

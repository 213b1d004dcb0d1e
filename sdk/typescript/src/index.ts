export {
  BinaryOperatorAggregate,
  DeltaChannel,
  type Reducer,
  type SingleReducer,
  UntrackedValueChannel,
} from "./channels/index.js";
export { InMemoryCache, MemorySaver, MemorySaver as InMemorySaver } from "./checkpoint/index.js";
export {
  CompiledStateGraph,
  type CompileOptions,
  GraphDrained,
  type InvokeOptions,
  IterableReadableStream,
  type StateSnapshot,
  type StreamMode,
  type StreamOptions,
  type StreamOutputMap,
} from "./compiled/index.js";
export { END, INTERRUPT, REMOVE_ALL_MESSAGES, START } from "./constants.js";
export * from "./errors/index.js";
export * from "./graph/index.js";
export {
  getConfig,
  getCurrentTaskInput,
  getStore,
  getWriter as getStreamWriter,
  getWriter,
  interrupt,
  type MemoCall,
  memo,
  pushMessage,
  RunControl,
  scope,
  writer,
} from "./runtime/index.js";
export {
  Annotation,
  AnnotationRoot,
  addMessages,
  type Messages,
  MessagesAnnotation,
  MessagesZodMeta,
  messagesStateReducer,
  ReducedValue,
  type StateDefinition,
  StateSchema,
  type StateType,
  UntrackedValue,
  type UpdateType,
} from "./state/index.js";
export { InMemoryStore } from "./store/index.js";
export * from "./values/index.js";

export { type Action, type Call, type RunnableLike, readAction } from "./actions.js";
export { GraphBuilder, type NodeOptions, type Schemas } from "./builder.js";
export { type CompiledGraph, isCompiledGraph, type Persistence } from "./compiled_graph.js";
export { buildManifest, type Manifest } from "./manifest.js";
export {
  type BranchDeclaration,
  type NodeDeclaration,
  type Policies,
  type PolicyOptions,
  refuseGraph,
} from "./nodes.js";
export { Program, type ProgramOptions, programOf } from "./program.js";
export { buildSpec, DRIFTS, fromDuration, toDuration } from "./spec.js";
export { validateGraph, validatePart } from "./validate.js";
export { buildGotos, writeFields, writeText } from "./writes.js";

/** A graph under construction, without the types of its state. */
import { END, START } from "../constants.js";
import { type DeclaredKey, type DeclaredState, readLegacyState, readState } from "../state/index.js";
import { readAction } from "./actions.js";
import { isCompiledGraph } from "./compiled_graph.js";
import {
  type BranchDeclaration,
  completePolicies,
  type EdgeDeclaration,
  type NodeDeclaration,
  type Policies,
  type PolicyOptions,
  readPolicies,
  refuseGraph,
} from "./nodes.js";

export type NodeOptions = PolicyOptions & {
  defer?: boolean;
  metadata?: Record<string, unknown>;
  /** Keys that the node reads, when they are not those of the state. */
  input?: unknown;
  ends?: readonly string[] | Readonly<Record<string, string>>;
  subgraphs?: readonly unknown[];
};

export type Schemas = { state: DeclaredState; input: DeclaredState; output: DeclaredState; context: unknown };

/** What tells options from the schema of a context. */
const OPTIONS = ["input", "output", "context", "interrupt", "writer", "nodes"];

type SchemaOptions = {
  stateSchema?: unknown;
  state?: unknown;
  channels?: unknown;
  input?: unknown;
  output?: unknown;
  inputSchema?: unknown;
  outputSchema?: unknown;
  context?: unknown;
  contextSchema?: unknown;
};

export class GraphBuilder {
  readonly nodes: Record<string, NodeDeclaration> = {};
  readonly edgeList: EdgeDeclaration[] = [];
  readonly branchList: BranchDeclaration[] = [];
  readonly schemas: Schemas;
  defaults: Policies = {};
  private readonly states: DeclaredState[] = [];

  constructor(given: unknown, options?: unknown) {
    this.schemas = readSchemas(given, options);
    const { state, input, output } = this.schemas;
    for (const one of [state, input, output]) this.addState(one);
  }

  /** All keys of the state, those that only inputs, outputs or nodes declare among them. */
  get keys(): Map<string, DeclaredKey> {
    const merged = new Map<string, DeclaredKey>();
    for (const state of this.states) {
      for (const [name, key] of state.keys) {
        if (!merged.has(name) || merged.get(name)?.channel.lc_graph_name === "LastValue")
          merged.set(name, key);
      }
    }
    return merged;
  }

  private addState(state: DeclaredState): DeclaredState {
    for (const [name, { channel }] of state.keys) {
      for (const known of this.states.flatMap((one) => one.keys.get(name)?.channel ?? [])) {
        const isLast = [channel, known].some((one) => one.lc_graph_name === "LastValue");
        if (!isLast && !known.equals(channel))
          throw refuseGraph(`the key "${name}" is declared twice, with different reducers`);
      }
    }
    this.states.push(state);
    return state;
  }

  declareNode(name: string, target: unknown, options: NodeOptions = {}): void {
    this.checkName(name);
    const isGraph = isCompiledGraph(target);
    const { ends = [] } = options;
    this.nodes[name] = {
      name,
      action: isGraph ? undefined : readAction(target, `node "${name}"`),
      subgraph: isGraph ? target : undefined,
      called: options.subgraphs?.filter(isCompiledGraph) ?? [],
      state: options.input === undefined ? this.schemas.state : this.addState(readState(options.input)),
      policies: readPolicies(options),
      deferred: options.defer ?? false,
      metadata: options.metadata ?? {},
      destinations: Array.isArray(ends) ? ends : Object.keys(ends),
      handles: "",
    };
  }

  private checkName(name: string): void {
    if (typeof name !== "string" || name === "")
      throw refuseGraph("a node needs a name: addNode(name, action)");
    if (name === START || name === END) throw refuseGraph(`node "${name}" is reserved`);
    if (name in this.nodes) throw refuseGraph(`node "${name}" is already there`);
    if (this.schemas.state.keys.has(name)) {
      throw refuseGraph(`"${name}" is a key of the state, so a node can't have this name`);
    }
    const reserved = ["|", ":"].find((one) => name.includes(one));
    if (reserved) throw refuseGraph(`"${reserved}" is not allowed in the names of nodes: "${name}"`);
  }

  declareEdge(from: string | readonly string[], target: string): void {
    if (target === START) throw refuseGraph("START can't be the end of an edge");
    const sources = typeof from === "string" ? [from] : [...from];
    for (const source of sources) {
      if (source === END) throw refuseGraph("END can't be the beginning of an edge");
      if (typeof from !== "string" && !(source in this.nodes))
        throw refuseGraph(`add node "${source}" first`);
    }
    const isKnown = this.edgeList.some((edge) => edge.target === target && sameNames(edge.sources, sources));
    if (!isKnown) this.edgeList.push({ sources, target });
  }

  declareBranch(
    source: string,
    path: unknown,
    pathMap?: readonly string[] | Readonly<Record<string, string>>,
  ): void {
    const action = readAction(path, `the condition after "${source}"`);
    const taken = this.branchList.filter((branch) => branch.source === source).map(({ name }) => name);
    if (action.name && taken.includes(action.name)) {
      throw refuseGraph(`the condition "${action.name}" is already there after node "${source}"`);
    }
    const paths = Array.isArray(pathMap) ? Object.fromEntries(pathMap.map((name) => [name, name])) : pathMap;
    const name = action.name || unusedName("condition", taken);
    this.branchList.push({ source, name, action, paths: paths as Record<string, string> | undefined });
  }

  declareDefaults(options: PolicyOptions): void {
    this.defaults = completePolicies(readPolicies(options), this.defaults);
  }
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

function unusedName(stem: string, taken: readonly string[]): string {
  let name = stem;
  for (let number = 2; taken.includes(name); number++) name = `${stem}-${number}`;
  return name;
}

function readSchemas(given: unknown, second: unknown): Schemas {
  const fields = (given ?? {}) as SchemaOptions;
  const isOptions = isPlain(second) && OPTIONS.some((name) => name in second);
  const options: SchemaOptions = isOptions ? (second as SchemaOptions) : {};
  const state = readStateOf(fields, given);
  const input = options.input ?? fields.input ?? fields.inputSchema;
  const output = options.output ?? fields.output ?? fields.outputSchema;
  const isWhole = state.source === given;
  return {
    state,
    input: isWhole && options.input === undefined ? state : input === undefined ? state : readState(input),
    output:
      isWhole && options.output === undefined ? state : output === undefined ? state : readState(output),
    context:
      options.context ??
      (isOptions ? undefined : second) ??
      (isWhole ? undefined : (fields.context ?? fields.contextSchema)),
  };
}

function readStateOf(fields: SchemaOptions, given: unknown): DeclaredState {
  if (isPlain(given)) {
    if (isPlain(fields.channels)) return readLegacyState(fields.channels as Record<string, unknown>);
    if (fields.stateSchema !== undefined) return readState(fields.stateSchema);
    if (fields.state !== undefined && typeof fields.state === "object") return readState(fields.state);
    if (fields.input !== undefined && fields.output !== undefined && typeof fields.input === "object") {
      return readState(fields.input);
    }
  }
  return readState(given);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** A graph that is ready to run: what it is called, and who does what in it. */
import { END } from "../constants.js";
import { DEFAULT_HANDLER, handlerName, nodeOfLevel } from "../names/index.js";
import type { DeclaredKey } from "../state/index.js";
import type { BaseStore, Drift } from "../values/index.js";
import { readAction } from "./actions.js";
import type { GraphBuilder } from "./builder.js";
import type { CompiledGraph } from "./compiled_graph.js";
import { type BranchDeclaration, completePolicies, type NodeDeclaration, type Policies } from "./nodes.js";

export type ProgramOptions = {
  name: string;
  /** Its nodes are part of a graph that the server has. */
  isPart: boolean;
  /** The name as people know it. */
  publicName: string;
  version: string;
  interruptBefore: readonly string[];
  interruptAfter: readonly string[];
  cache: unknown;
  store: BaseStore | undefined;
  drift: Drift | undefined;
  driftIgnore: readonly string[];
};

export class Program {
  readonly nodes: ReadonlyMap<string, NodeDeclaration>;
  readonly keys: ReadonlyMap<string, DeclaredKey>;
  /** Milliseconds that a superstep may take. */
  stepTimeout: number | undefined;

  constructor(
    readonly builder: GraphBuilder,
    readonly options: ProgramOptions,
  ) {
    this.keys = builder.keys;
    this.nodes = withHandlers(builder);
  }

  get name(): string {
    return this.options.name;
  }

  get isRoot(): boolean {
    return this.builder.schemas.state.isRoot;
  }

  /** How a node is run. */
  policiesOf(node: NodeDeclaration): Policies {
    return node.handles ? node.policies : completePolicies(node.policies, this.builder.defaults);
  }

  /** The node that takes over when this one has failed; empty for none. */
  handlerOf(node: NodeDeclaration): string {
    if (node.handles) return "";
    if (node.policies.errorHandler !== undefined) return handlerName(node.name);
    return this.builder.defaults.errorHandler === undefined ? "" : DEFAULT_HANDLER;
  }

  findBranch(source: string, name: string): BranchDeclaration | undefined {
    return this.builder.branchList.find((branch) => branch.source === source && branch.name === name);
  }

  /** Where a conditional edge may lead. */
  targetsOf(branch: BranchDeclaration): string[] {
    if (branch.paths) return [...new Set(Object.values(branch.paths))];
    return [...[...this.nodes.values()].filter(({ handles }) => !handles).map(({ name }) => name), END];
  }

  /** The keys of the output; none when that is the whole state. */
  get outputKeys(): string[] | undefined {
    const { output } = this.builder.schemas;
    if (output.isRoot || [...this.keys.keys()].every((name) => output.keys.has(name))) return undefined;
    return [...output.keys.keys()];
  }

  /** The graphs that are nodes below this one, innermost first, each once. */
  descendants(): Program[] {
    const found = new Set<Program>();
    for (const { subgraph } of this.nodes.values()) {
      if (!subgraph) continue;
      for (const one of [...programOf(subgraph).descendants(), programOf(subgraph)]) found.add(one);
    }
    return [...found];
  }

  /** The graph in a namespace, given by the names of its levels. */
  findGraph(levels: readonly string[]): Program | undefined {
    let program: Program | undefined = this;
    for (const level of levels) {
      const graph: CompiledGraph | undefined = program?.nodes.get(nodeOfLevel(level))?.subgraph;
      program = graph && programOf(graph);
    }
    return program;
  }
}

/** The program of a compiled graph. */
export function programOf(graph: CompiledGraph): Program {
  return graph.program as Program;
}

function withHandlers(builder: GraphBuilder): Map<string, NodeDeclaration> {
  const nodes = new Map(Object.entries(builder.nodes));
  for (const node of Object.values(builder.nodes)) {
    const own = node.policies.errorHandler;
    const handler = own ?? builder.defaults.errorHandler;
    if (handler === undefined) continue;
    const name = own === undefined ? DEFAULT_HANDLER : handlerName(node.name);
    if (!nodes.has(name)) nodes.set(name, declareHandler(builder, name, handler, node.name));
  }
  return nodes;
}

function declareHandler(
  builder: GraphBuilder,
  name: string,
  handler: unknown,
  handles: string,
): NodeDeclaration {
  const { retry, timeout } = builder.defaults;
  return {
    name,
    action: readAction(handler, `the error handler of "${handles}"`),
    subgraph: undefined,
    called: [],
    state: builder.schemas.state,
    policies: { retry, timeout },
    deferred: false,
    metadata: {},
    destinations: [],
    handles,
  };
}

/**
 * What LangGraph.js 1.7.3 has is here, or docs/typescript.md names it with what to use instead. Its entry `web` has the
 * names of the main one.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { Annotation, START, StateGraph } from "../src/index.js";
import known from "./langgraph_names.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The files of the entries whose names are those of entries of LangGraph.js. */
const FILES: Record<string, string> = {
  ".": "src/index.ts",
  "./channels": "src/channels/index.ts",
  "./prebuilt": "src/prebuilt/index.ts",
  "./zod": "src/zod/index.ts",
  "./pregel": "src/pregel/index.ts",
  "./stream": "src/stream/index.ts",
};

type Names = { values: string[]; types: string[] };

/** What each entry exports: values, and all that may be a type. */
function readExports(): Map<string, Names> {
  const config = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT);
  const program = ts.createProgram(
    Object.values(FILES).map((file) => ROOT + file),
    options,
  );
  const checker = program.getTypeChecker();
  const namesOf = (file: string): Names => {
    const source = program.getSourceFile(ROOT + file);
    const symbol = source && checker.getSymbolAtLocation(source);
    const exported = symbol ? checker.getExportsOfModule(symbol) : [];
    return {
      values: exported.filter((one) => isValue(one, checker)).map(({ name }) => name),
      types: exported.map(({ name }) => name),
    };
  };
  return new Map(Object.entries(FILES).map(([entry, file]) => [entry, namesOf(file)]));
}

function isValue(symbol: ts.Symbol, checker: ts.TypeChecker): boolean {
  if (symbol.declarations?.some((one) => ts.isExportSpecifier(one) && ts.isTypeOnlyExportDeclaration(one))) {
    return false;
  }
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return (target.flags & ts.SymbolFlags.Value) !== 0;
}

/** The names in the first column of the table of what is not there. */
function readNamed(): Set<string> {
  const page = readFileSync(new URL("../../../docs/typescript.md", import.meta.url), "utf8");
  const section = page.split("\n## What is not there\n")[1]?.split("\n## ")[0] ?? "";
  const cells = [...section.matchAll(/^\|([^|]*)\|/gm)].map(([, cell]) => cell ?? "");
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? "")));
}

function split(names: string): string[] {
  return names.split(" ").filter(Boolean);
}

const graph = new StateGraph(Annotation.Root({ a: Annotation<string> }))
  .addNode("x", () => ({}))
  .addEdge(START, "x");
const MEMBERS: Record<string, object> = { StateGraph: graph, CompiledStateGraph: graph.compile() };

describe("names of LangGraph.js", () => {
  const named = readNamed();
  const exported = readExports();
  const needed = new Set<string>();

  test.each(Object.entries(known.entries))("%s", (entry, { values, types }) => {
    const has = (kind: keyof Names, name: string) => exported.get(entry)?.[kind].includes(name) ?? false;
    const missing = [
      ...split(values).filter((name) => !has("values", name)),
      ...split(types).filter((name) => !has("types", name)),
    ];
    for (const name of missing) needed.add(name);
    expect(missing.filter((name) => !named.has(name))).toEqual([]);
  });

  test.each(Object.entries(known.members))("members of %s", (kind, names) => {
    const missing = split(names).filter((name) => !(name in (MEMBERS[kind] ?? {})));
    for (const name of missing) needed.add(name);
    expect(missing.filter((name) => !named.has(name))).toEqual([]);
  });

  test("what is there is not named as missing", () => {
    expect([...named].filter((name) => !needed.has(name))).toEqual([]);
  });
});

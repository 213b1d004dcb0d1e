/**
 * The rooms of the SDK, and which of them each may import. docs/adr/0065 describes them.
 *
 * A room is a file or a folder right below `src`. What programs declare goes down to the values it is
 * made of. Only `compiled` knows both the worker, which runs nodes, and the client, which starts runs.
 */
import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), "..", "src");

const GROUND = "constants errors names values";

/** The rooms, from the inside out. A face only exports what others define. */
const ALLOWED: Record<string, string> = {
  constants: "",
  values: "constants",
  errors: "constants values",
  names: "constants",
  messages: GROUND,
  codec: `${GROUND} messages`,
  runtime: `${GROUND} codec messages`,
  channels: `${GROUND} codec messages`,
  state: `${GROUND} codec messages channels`,
  declare: `${GROUND} codec messages channels state runtime`,
  drawing: `${GROUND} declare`,
  // What every way to call a server has in common: statuses, deadlines, attempts.
  calls: GROUND,
  // Items beside the states of threads, in the memory of the process or in a server.
  store: `${GROUND} codec messages calls`,
  // Traces of OpenTelemetry, where it is installed.
  spans: "",
  // Calls over gRPC.
  transport: `${GROUND} calls spans`,
  // Calls over HTTP, from browsers.
  browser: `${GROUND} calls`,
  worker: `${GROUND} codec messages runtime channels state declare calls spans transport`,
  client: `${GROUND} codec messages calls store`,
  dev: GROUND,
  checkpoint: `${GROUND} dev`,
  compiled: `${GROUND} codec messages runtime channels state declare drawing store calls transport worker client dev checkpoint`,
  graph: `${GROUND} codec messages runtime channels state declare compiled`,
  prebuilt: `${GROUND} codec messages runtime state declare graph compiled`,
  node: `${GROUND} runtime transport client`,
  web: `${GROUND} messages channels state declare calls browser client`,
  pregel: "compiled",
  remote: "compiled",
  stream: "compiled client",
  zod: "state channels",
  index: `${GROUND} messages runtime channels state declare client compiled graph prebuilt checkpoint store dev node`,
};

/** Rooms that a browser loads, and those that only programs for Node do. */
const USES_GRPC = ["transport"];
const USES_NODE = ["dev", "runtime", "transport", "worker", "dev", "compiled", "node"];

type Module = { room: string; imports: string[] };

const NO_ROOM = "(generated)";

function roomOf(path: string): string {
  const first = relative(SOURCE, path).split(sep)[0] ?? "";
  return first === "_gen" ? NO_ROOM : first.replace(/\.ts$/, "");
}

function readModules(): Map<string, Module> {
  const found = new Map<string, Module>();
  for (const entry of readdirSync(SOURCE, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !path.endsWith(".ts") || roomOf(path) === NO_ROOM) continue;
    const text = readFileSync(path, "utf8");
    found.set(path, { room: roomOf(path), imports: readImports(text) });
  }
  return found;
}

/** What a module imports, wherever and however it does. */
function readImports(text: string): string[] {
  return ts.preProcessFile(text, true, true).importedFiles.map((file) => file.fileName);
}

function targetOf(path: string, name: string): string {
  return join(dirname(path), name).replace(/\.js$/, ".ts");
}

/** Pairs of modules, of which the first imports the second. */
function findImports(modules: Map<string, Module>): [string, string][] {
  return [...modules].flatMap(([path, module]) =>
    module.imports
      .filter((name) => name.startsWith("."))
      .map((name): [string, string] => [path, targetOf(path, name)]),
  );
}

/** The modules that are in a circle, or on a way from one to another. */
function findCircles(imports: [string, string][]): string[] {
  const starts = new Set(imports.map(([from]) => from));
  const ends = new Set(imports.map(([, to]) => to));
  const left = imports.filter(([from, to]) => ends.has(from) && starts.has(to));
  return left.length === imports.length ? [...starts] : findCircles(left);
}

/** Optional packages: types of them, and the rooms that load them when they are there. */
const PEERS: Record<string, readonly string[]> = {
  "@langchain/core": ["messages", "state", "zod", "worker", "graph", "prebuilt", "compiled"],
  "@opentelemetry/api": ["spans"],
  zod: ["zod"],
};

function isPeerOf(room: string, name: string): boolean {
  return Object.entries(PEERS).some(
    ([peer, rooms]) => (name === peer || name.startsWith(`${peer}/`)) && rooms.includes(room),
  );
}

const MODULES = readModules();
const IMPORTS = findImports(MODULES);
const ROOMS = [...new Set([...MODULES.values()].map((module) => module.room))].sort();

function packagesOf(room: string): string[] {
  return [...MODULES.values()]
    .filter((module) => module.room === room)
    .flatMap((module) => module.imports)
    .filter((name) => !name.startsWith("."));
}

describe("rooms", () => {
  test("every room has a rule", () => {
    expect(ROOMS.filter((room) => !(room in ALLOWED))).toEqual([]);
  });

  test.each(ROOMS)("%s imports only what it may", (room) => {
    const allowed = new Set([...(ALLOWED[room] ?? "").split(" "), room, NO_ROOM]);
    const wrong = IMPORTS.filter(([from, to]) => roomOf(from) === room && !allowed.has(roomOf(to)));
    expect(wrong.map(([from, to]) => `${relative(SOURCE, from)} imports ${relative(SOURCE, to)}`)).toEqual(
      [],
    );
  });

  test("what is imported is there", () => {
    expect(IMPORTS.map(([, to]) => to).filter((to) => roomOf(to) !== NO_ROOM && !MODULES.has(to))).toEqual(
      [],
    );
  });

  test("no modules import each other", () => {
    expect(findCircles(IMPORTS).map((path) => relative(SOURCE, path))).toEqual([]);
  });

  test("the gRPC library is behind one room", () => {
    expect(ROOMS.filter((room) => packagesOf(room).includes("@grpc/grpc-js"))).toEqual(
      ROOMS.filter((room) => USES_GRPC.includes(room)),
    );
  });

  test("what a browser loads imports no module of Node", () => {
    const builtin = new Set(builtinModules);
    const using = ROOMS.filter((room) =>
      packagesOf(room).some((name) => name.startsWith("node:") || builtin.has(name)),
    );
    expect(using.filter((room) => !USES_NODE.includes(room))).toEqual([]);
  });

  test("only packages that are declared are imported", () => {
    const known = ["@bufbuild/protobuf", "@grpc/grpc-js"];
    const foreign = ROOMS.flatMap((room) => packagesOf(room).filter((name) => !isPeerOf(room, name))).filter(
      (name) => !name.startsWith("node:") && !known.some((one) => name === one || name.startsWith(`${one}/`)),
    );
    expect(foreign).toEqual([]);
  });

  test("a circle is found", () => {
    const circle: [string, string][] = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
      ["d", "a"],
    ];
    expect(findCircles(circle).sort()).toEqual(["a", "b", "c"]);
    expect(findCircles(circle.filter(([from]) => from !== "c"))).toEqual([]);
  });

  test("imports are found in every form", () => {
    const text =
      'import a from "./a.js"; import type { B } from "./b.js"; export * from "./c.js"; void import("./d.js");';
    expect(readImports(text)).toEqual(["./a.js", "./b.js", "./c.js", "./d.js"]);
  });
});

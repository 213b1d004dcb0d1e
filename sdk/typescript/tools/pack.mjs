// Packs the package as it would be published, and tries the file: what publint and arethetypeswrong say of it, and
// a program in an empty project, as ESM and as CommonJS, on each version of Node that is named; what versions of
// TypeScript infer with its types; and the examples.
//   node tools/pack.mjs [20 22 24]      without versions: on the Node that runs this
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, "..", "..", ".cache");
const folder = join(cache, "ts-pack");
const examples = join(root, "..", "..", "examples");
/** Programs that print what their expected.txt says. */
const EXAMPLES = ["mini-runner-ts", "node-interrupt-ts"];
/**
 * The oldest version of TypeScript that the package supports, which does not understand all declarations of the
 * packages that it depends on, and the newest.
 */
const TYPESCRIPTS = [
  { version: "5.4.5", skipLibCheck: true },
  { version: "7.0.2", skipLibCheck: false },
];
/** Programs that are compiled. */
const TYPE_TESTS = ["inference.ts", "ported.ts", "ported_forms.ts"];
const QUIET = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];

function run(command, args, options = {}) {
  return execFileSync(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    ...options,
  });
}

const tool = (name, ...args) => process.stdout.write(run(join(root, "node_modules", ".bin", name), args));

/** The tarball, freshly built. */
function pack() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  tool("tsdown", "--logLevel", "warn");
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", folder]));
  console.log(`${packed.filename}: ${packed.files.length} files, ${packed.size} bytes`);
  for (const { path } of packed.files) {
    if (!/^(dist\/|package\.json$|README\.md$)/.test(path)) throw new Error(`${path} is packed`);
  }
  // Under a name without a version for the example.
  copyFileSync(join(folder, packed.filename), join(folder, "graphd.tgz"));
  return join(folder, packed.filename);
}

/** The program of a version of Node, from its package on npm. */
function findNode(version) {
  if (version === undefined) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(cache, `node-${version}`);
  const program = join(prefix, "node_modules", name, "bin", "node");
  if (!existsSync(program)) {
    run("npm", ["install", "--prefix", prefix, "--no-save", "--no-audit", "--no-fund", `${name}@${version}`]);
  }
  return program;
}

/** An empty project with the tarball in it, and the programs that are tried there. */
function createProject(tarball) {
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "project", "private": true }\n');
  run("npm", ["install", ...QUIET, tarball], { cwd: project });
  const body = readFileSync(join(root, "tests", "packed_program.mjs"), "utf8");
  writeFileSync(join(project, "program.mjs"), body);
  const required = body.replace(/^import (\{.*\}) from "(.*)";$/gm, 'const $1 = require("$2");');
  writeFileSync(join(project, "program.cjs"), required);
  for (const name of EXAMPLES) {
    const source = readFileSync(join(examples, name, "main.ts"), "utf8");
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    writeFileSync(join(project, `${name}.mjs`), ts.transpileModule(source, { compilerOptions }).outputText);
  }
  return project;
}

/** Compiles what is inferred of graphs, with the types of the tarball, by the versions of TypeScript. */
function checkTypes(tarball) {
  const project = join(folder, "types");
  mkdirSync(project);
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const peers = ["zod", "@langchain/core", "@types/node"].map((name) => `${name}@${devDependencies[name]}`);
  const compilers = TYPESCRIPTS.map(({ version }) => `typescript-${version}@npm:typescript@${version}`);
  writeFileSync(join(project, "package.json"), '{ "name": "types", "private": true, "type": "module" }\n');
  run("npm", ["install", ...QUIET, tarball, ...peers, ...compilers], { cwd: project });
  for (const file of TYPE_TESTS) {
    const source = readFileSync(join(root, "tests", "types", file), "utf8");
    const own = source.replaceAll(/"\.\.\/\.\.\/src\/(?:(\w+)\/)?index\.js"/g, (_, entry) =>
      entry === undefined ? '"graphd"' : `"graphd/${entry}"`,
    );
    writeFileSync(join(project, file), own);
  }
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "ES2022",
    module: "NodeNext",
    types: ["node"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: TYPE_TESTS }));
  for (const { version, skipLibCheck } of TYPESCRIPTS) {
    const compiler = join(project, "node_modules", `typescript-${version}`, "bin", "tsc");
    run(process.execPath, [compiler, "-p", project, "--skipLibCheck", String(skipLibCheck)], {
      stdio: "inherit",
      timeout: 300_000,
    });
    console.log(`the types are inferred by TypeScript ${version}`);
  }
}

/** Checks and tests an example of the repository with the tarball, in a copy of its folder. */
function testExample(name, tarball) {
  const copy = join(folder, name);
  const isSource = (path) => !path.includes("node_modules");
  cpSync(join(root, "..", "..", "examples", name), copy, { recursive: true, filter: isSource });
  const manifest = JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));
  manifest.dependencies.graphd = `file:${tarball}`;
  writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
  run("npm", ["install", ...QUIET], { cwd: copy });
  run("npm", ["run", "check"], { cwd: copy, stdio: "inherit" });
  run("npm", ["test"], { cwd: copy, stdio: "inherit", timeout: 300_000 });
}

const tarball = pack();
tool("publint", "run", tarball, "--strict");
tool("attw", tarball, "--profile", "node16", "--format", "table-flipped");
checkTypes(tarball);
testExample("agent-ts", tarball);
const project = createProject(tarball);
const programs = readdirSync(project).filter((name) => name.startsWith("program."));
const versions = process.argv.slice(2);
for (const version of versions.length > 0 ? versions : [undefined]) {
  const node = findNode(version);
  const name = run(node, ["--version"]).trim();
  for (const program of programs) {
    const said = run(node, [program], { cwd: project, timeout: 120_000 });
    if (said !== "log: read 3 EUR, review, closed: approved\n")
      throw new Error(`${program} on Node ${name} says: ${said}`);
    console.log(`${program} works on Node ${name}`);
  }
  for (const example of EXAMPLES) {
    const said = run(node, [`${example}.mjs`], { cwd: project, timeout: 120_000 });
    if (said !== readFileSync(join(examples, example, "expected.txt"), "utf8"))
      throw new Error(`${example} on Node ${name} says: ${said}`);
    console.log(`${example} works on Node ${name}`);
  }
}

// Builds the page into dist/, which is committed: go install needs no Node. The same sources give the
// same bytes.
//
// page.js is one file, because several are packed worse. What is loaded later takes what both need
// from it: src/shared.ts lists that.

import { build } from "esbuild";
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { packDagre } from "./dagre.mjs";

const out = process.argv[2] ?? "dist";
const assets = relative("", join(resolve(out), "assets")); // as esbuild names it

/** What page.js loads later, by the names of the files. */
const later = {
  thread: "src/thread/screen.tsx",
  threads: "src/thread/list.tsx",
  graphs: "src/graphs/screen.tsx",
  workers: "src/workers/screen.tsx",
  overview: "src/overview/screen.tsx",
  similar: "src/question/similar.tsx",
  extras: "src/extras.ts",
  past: "src/question/past.ts",
  dialogs: "src/inbox/dialogs.ts",
};

/** The most bytes after gzip of what is fetched, by what is shown; of a screen those beyond the first load. */
const budgets = [
  { shown: "first load, JS", most: 30 << 10, files: ["page.js"] },
  { shown: "first load, CSS", most: 7 << 10, files: ["style.css"] },
  { shown: "threads and graphs, CSS", most: 3 << 10, files: ["thread.css"] },
  { shown: "a thread with its diagram", most: 20 << 10, files: ["thread.js", "layout.js"] },
  { shown: "a graph with its drawing", most: 20 << 10, files: ["graphs.js", "layout.js"] },
  { shown: "threads", most: 4 << 10, files: ["threads.js"] },
  { shown: "workers", most: 3 << 10, files: ["workers.js"] },
  { shown: "the overview", most: 5 << 10, files: ["overview.js"] },
  { shown: "answers like one", most: 2 << 10, files: ["similar.js"] },
  { shown: "what happened to a question", most: 3 << 10, files: ["past.js"] },
  { shown: "assigning, putting off, several", most: 5 << 10, files: ["dialogs.js"] },
  { shown: "sign-in, finding, keys", most: 5 << 10, files: ["extras.js"] },
];

const options = {
  outdir: assets,
  bundle: true,
  format: "esm",
  minify: true,
  target: ["chrome123", "firefox128", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
  logLevel: "warning",
  legalComments: "none",
};
const dagre = packDagre();
const notice = { js: "/* Licenses: /assets/licenses.txt */" }; // of files with code of others

rmSync(out, { recursive: true, force: true });
const page = await build({
  ...options,
  entryPoints: { page: "src/main.tsx", style: "src/style.css", thread: "src/thread/style.css" },
  banner: notice,
  plugins: [{
    name: "load-later",
    setup: ({ onResolve, resolve: find }) => onResolve({ filter: /^\./ }, async ({ path, resolveDir, kind, pluginData }) => {
      if (kind !== "dynamic-import" || pluginData === "found") return undefined;
      const found = await find(path, { resolveDir, kind, pluginData: "found" });
      const name = Object.keys(later).find((name) => resolve(later[name]) === found.path);
      return name ? { path: `./${name}.js`, external: true } : fail(`${path} is loaded later, and is none of the files of build.mjs`);
    }),
  }],
});
const inPage = new Set(Object.keys(page.metafile.inputs).map((path) => resolve(path)));
const lazy = await build({
  ...options,
  entryPoints: later,
  splitting: true,
  chunkNames: "[name]-[hash]",
  plugins: [{
    name: "take-from-page",
    setup: ({ onResolve, resolve: find }) => onResolve({ filter: /.*/ }, async ({ path, resolveDir, kind, pluginData, importer }) => {
      if (kind === "entry-point" || pluginData === "found") return undefined;
      const found = await find(path, { resolveDir, kind, importer, pluginData: "found" });
      return inPage.has(found.path) ? { path: "./page.js", external: true } : undefined;
    }),
  }],
});
// The worker takes nothing from the page: it has no document.
const worker = await build({ ...options, entryPoints: { layout: "src/drawing/worker.ts" }, format: "iife", banner: notice, plugins: [dagre] });
// What graphd graph draw runs. It is no part of the page, and loaded by no browser.
const drawing = await build({
  entryPoints: ["src/drawing/command.ts"],
  outfile: join(out, "drawing.js"),
  bundle: true,
  format: "iife",
  globalName: "drawing",
  minify: true,
  target: "es2020",
  metafile: true,
  logLevel: "warning",
  legalComments: "none",
  banner: notice,
  plugins: [dagre],
});
cpSync("src/index.html", join(out, "index.html"));
cpSync("src/icon.svg", join(assets, "icon.svg"));
writeFileSync(join(assets, "licenses.txt"), collectLicenses([page, lazy, worker, drawing]));

if (Object.keys(lazy.metafile.inputs).some((path) => packageOf(path))) fail("what is loaded later has code of others: give it the notice of page.js");

// What is taken from the page must be there.
const given = new Set(Object.values(page.metafile.outputs).flatMap((o) => o.exports));
for (const path of Object.keys(lazy.metafile.outputs)) {
  for (const [, names] of readFileSync(path, "utf8").matchAll(/import\{([^}]*)\}from"\.\/page\.js"/g)) {
    for (const name of names.split(",").map((n) => n.split(" as ")[0])) {
      if (!given.has(name)) fail(`${relative(assets, path)} takes ${name} from the page: add its module to src/shared.ts`);
    }
  }
}

for (const { shown, most, files } of budgets) {
  const fetched = new Set();
  for (const file of files) addImports(join(assets, file), fetched);
  const size = [...fetched].reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0);
  console.log(`${shown.padEnd(26)} ${String(size).padStart(6)} bytes gz of ${most}, ${fetched.size} files`);
  if (size > most) fail(`${shown}: more than the budget`);
}

/** Adds a file, and what it imports beside page.js. */
function addImports(path, found) {
  if (found.has(path)) return;
  found.add(path);
  for (const { path: imported, kind, external } of lazy.metafile.outputs[path]?.imports ?? []) {
    if (kind === "import-statement" && !external) addImports(imported, found);
  }
}

/** Returns the licenses of the packages whose code is in what was built. */
function collectLicenses(built) {
  const names = new Set(built.flatMap(({ metafile }) => Object.keys(metafile.inputs).map(packageOf)).filter(Boolean));
  const texts = [...names].sort().map((name) => {
    const folder = join("node_modules", name);
    const file = join(folder, "LICENSE");
    if (!existsSync(file)) fail(`${name} has no LICENSE`);
    return `${name} ${JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version}\n\n${readFileSync(file, "utf8").trim()}\n`;
  });
  return "The page of graphd, and the drawings of its command line, have code of these packages.\n\n\n" + texts.join("\n\n");
}

/** Returns the package of a module; dagre.mjs names those of dagre its own way. */
function packageOf(path) {
  return path.startsWith("dagre:") ? "@dagrejs/dagre" : /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
}

function fail(why) {
  console.error("build: " + why);
  process.exit(1);
}

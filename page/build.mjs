// Builds the page into dist/, which is committed: go install needs no Node. The same sources give
// the same bytes.

import { build } from "esbuild";
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "dist";
const assets = join(out, "assets");

// The most bytes after gzip, by what is loaded.
const budgets = { first: 32 << 10, style: 7 << 10, screens: 33 << 10 };

rmSync(out, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: { page: "src/main.tsx", style: "src/style.css" },
  outdir: assets,
  bundle: true,
  splitting: true,
  format: "esm",
  minify: true,
  target: ["chrome123", "firefox128", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  chunkNames: "[name]-[hash]",
  metafile: true,
  logLevel: "warning",
  legalComments: "none",
});
cpSync("src/index.html", join(out, "index.html"));
cpSync("src/icon.svg", join(assets, "icon.svg"));

const sizeOf = (path) => gzipSync(readFileSync(path), { level: 9 }).length;

/** Returns the files that a file loads when it is loaded, itself among them. */
function loadedWith(path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const i of metafile.outputs[path].imports) if (i.kind === "import-statement") loadedWith(i.path, found);
  return found;
}

const first = loadedWith(join(assets, "page.js"));
const byEntry = (entry) => Object.entries(metafile.outputs).find(([, o]) => o.entryPoint === entry)[0];
const screens = new Set([...loadedWith(byEntry("src/screens.ts")), ...loadedWith(byEntry("src/drawing/layout.ts"))]);
const sum = (paths) => [...paths].reduce((total, path) => total + sizeOf(path), 0);
const sizes = [
  ["first load, JS", sum(first), budgets.first],
  ["first load, CSS", sizeOf(join(assets, "style.css")), budgets.style],
  ["other screens", sum([...screens].filter((path) => !first.has(path))), budgets.screens],
];
for (const [what, size, most] of sizes) console.log(`${what.padEnd(24)} ${String(size).padStart(6)} bytes gz of ${most}`);
console.log(`${readdirSync(assets).length + 1} files`);
if (sizes.some(([, size, most]) => size > most)) {
  console.error("build: more than the budget");
  process.exit(1);
}

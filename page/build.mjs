// Builds the page into dist/, which is committed: go install needs no Node. The same sources give the
// same bytes.
//
// page.js is one file, because several are packed worse. What is loaded later takes what both need
// from it: src/shared.ts lists that.

import { build } from "esbuild";
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "dist";
const assets = join(out, "assets");

// The most bytes after gzip, by what is loaded.
const budgets = { first: 30 << 10, style: 7 << 10, screens: 35 << 10 };

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
const later = ["screens", "extras"];

rmSync(out, { recursive: true, force: true });
const page = await build({
  ...options,
  entryPoints: { page: "src/main.tsx", style: "src/style.css" },
  plugins: [{
    name: "load-later",
    setup: ({ onResolve }) => onResolve({ filter: /\/(screens|extras)$/ }, ({ kind, path }) => (kind === "dynamic-import" ? { path: "./" + path.split("/").pop() + ".js", external: true } : undefined)),
  }],
});
const inPage = new Set(Object.keys(page.metafile.inputs).map((path) => resolve(path)));
const lazy = await build({
  ...options,
  entryPoints: later.map((name) => `src/${name}.ts`),
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
// What graphd graph draw runs. It is no part of the page, and loaded by no browser.
await build({
  entryPoints: ["src/drawing/command.ts"],
  outfile: join(out, "drawing.js"),
  bundle: true,
  format: "iife",
  globalName: "drawing",
  minify: true,
  target: "es2020",
  logLevel: "warning",
  legalComments: "none",
});
cpSync("src/index.html", join(out, "index.html"));
cpSync("src/icon.svg", join(assets, "icon.svg"));

// What is taken from the page must be there.
const given = new Set(Object.values(page.metafile.outputs).flatMap((o) => o.exports));
for (const path of Object.keys(lazy.metafile.outputs)) {
  for (const [, names] of readFileSync(path, "utf8").matchAll(/import\{([^}]*)\}from"\.\/page\.js"/g)) {
    for (const name of names.split(",").map((n) => n.split(" as ")[0])) {
      if (!given.has(name)) fail(`${relative(assets, path)} takes ${name} from the page: add its module to src/shared.ts`);
    }
  }
}

const sizeOf = (name) => gzipSync(readFileSync(join(assets, name)), { level: 9 }).length;
const others = readdirSync(assets).filter((name) => name.endsWith(".js") && name !== "page.js" && !name.startsWith("extras"));
const sizes = [
  ["first load, JS", sizeOf("page.js"), budgets.first],
  ["first load, CSS", sizeOf("style.css"), budgets.style],
  ["other screens", others.reduce((sum, name) => sum + sizeOf(name), 0), budgets.screens],
];
for (const [what, size, most] of sizes) {
  console.log(`${what.padEnd(16)} ${String(size).padStart(6)} bytes gz of ${most}`);
  if (size > most) fail(`${what}: more than the budget`);
}

function fail(why) {
  console.error("build: " + why);
  process.exit(1);
}

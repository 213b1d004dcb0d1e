// Modules of the page for tests that need no browser.

import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packDagre } from "../dagre.mjs";

const page = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Returns what a module of src/ exports, with the parts of dagre that the page has, or with all of dagre. */
export async function importSource(path, { isWhole = false } = {}) {
  const plugins = isWhole ? [] : [packDagre()];
  const { outputFiles } = await build({ entryPoints: [join(page, "src", path)], bundle: true, format: "esm", write: false, logLevel: "warning", plugins });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

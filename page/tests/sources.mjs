// Modules of the page for tests that need no browser.

import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const page = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Returns what a module of src/ exports. */
export async function importSource(path) {
  const { outputFiles } = await build({ entryPoints: [join(page, "src", path)], bundle: true, format: "esm", write: false, logLevel: "warning" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Programs of docs/typescript.md import the package by its name.
    alias: [
      { find: /^graphd$/, replacement: source("index.ts") },
      { find: /^graphd\/client$/, replacement: source("node.ts") },
      { find: /^graphd\/dev$/, replacement: source("dev/index.ts") },
      { find: /^graphd\/prebuilt$/, replacement: source("prebuilt/index.ts") },
      { find: /^graphd\/web$/, replacement: source("web.ts") },
    ],
  },
  test: {
    include: ["tests/**/*.test.ts"],
    // A limit against hanging, on the busiest machine. No test waits for it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    // The files of a process share what they import: anew for each file, that takes more than the tests.
    isolate: false,
  },
});

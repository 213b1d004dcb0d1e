import { defineConfig } from "tsdown";

/** One entry for each face of the package; package.json exports the same. */
export default defineConfig({
  entry: {
    index: "src/index.ts",
    client: "src/node.ts",
    dev: "src/dev/index.ts",
    web: "src/web.ts",
  },
  format: ["esm", "cjs"],
  target: "es2022",
  platform: "neutral",
  dts: true,
  sourcemap: false,
  clean: true,
  deps: { neverBundle: [/^node:/] },
});

import { defineConfig } from "tsdown";

/** One entry for each face of the package; package.json exports the same. */
export default defineConfig({
  entry: {
    index: "src/index.ts",
  },
  format: ["esm", "cjs"],
  target: "es2022",
  platform: "neutral",
  dts: true,
  sourcemap: false,
  clean: true,
  deps: { neverBundle: [/^node:/] },
});

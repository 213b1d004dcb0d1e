import { defineConfig } from "tsdown";

/** One entry for each face of the package; package.json exports the same. */
export default defineConfig({
  entry: {
    index: "src/index.ts",
    channels: "src/channels/index.ts",
    client: "src/node.ts",
    dev: "src/dev/index.ts",
    prebuilt: "src/prebuilt/index.ts",
    web: "src/web.ts",
    pregel: "src/pregel/index.ts",
    stream: "src/stream/index.ts",
    zod: "src/zod/index.ts",
  },
  format: ["esm", "cjs"],
  target: "es2022",
  platform: "neutral",
  dts: true,
  sourcemap: false,
  clean: true,
  deps: { neverBundle: [/^node:/] },
});

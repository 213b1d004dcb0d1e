// Builds the page and serves it. PORT is another port, and GRAPHD_URL another server.
import { context } from "esbuild";

const url = process.env.GRAPHD_URL ?? "http://127.0.0.1:2024";
const builder = await context({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/main.tsx", "src/style.css"],
  outdir: "page",
  bundle: true,
  format: "esm",
  jsx: "automatic",
  define: { GRAPHD_URL: JSON.stringify(url), "process.env.NODE_ENV": '"production"' },
  minify: true,
  write: false,
});
const { port } = await builder.serve({
  host: "127.0.0.1",
  port: Number(process.env.PORT ?? 5173),
  servedir: "page",
});
console.log(`http://127.0.0.1:${port}`);

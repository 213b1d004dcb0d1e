import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    // A limit against hanging, on the busiest machine. No test waits for it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
  },
});

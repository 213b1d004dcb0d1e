import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.js";

/** For `make oracle-ts`, which writes the cases. */
const oracle = mergeConfig(base, defineConfig({}));
oracle.test = { ...oracle.test, include: ["oracle/**/*.test.ts"] };

export default oracle;

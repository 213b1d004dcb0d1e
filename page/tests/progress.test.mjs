// How far a graph has come, of its checkpoints.

import assert from "node:assert/strict";
import { test } from "node:test";
import { importSource } from "./sources.mjs";

const { edgeKey, joinKey, readProgress } = await importSource("thread/history.ts");

const done = (node) => ({ node, result: { json: "{}" } });
const input = { source: "CHECKPOINT_SOURCE_INPUT", tasks: [done("__start__")] };
const step = (...tasks) => ({ source: "CHECKPOINT_SOURCE_LOOP", tasks });
const spec = { edges: [{ sources: ["near", "far"], target: "after" }, { sources: ["way"], target: "far" }] };
const join = joinKey(["near", "far"], "after");

test("a join waits for the source that is on its way", () => {
  const path = [input, step(done("near"), done("way")), step({ node: "far" })];
  const { joins, edges } = readProgress(spec, path, true);
  assert.equal(joins.get(join), "due");
  assert.ok(edges.has(edgeKey("way", "far")) && !edges.has(edgeKey("near", "after")));
  assert.equal(readProgress(spec, path.slice(0, 1), true).joins.size, 0);
});

test("all edges of a join are taken when the last source has come", () => {
  const path = [input, step(done("near"), done("way")), step(done("far")), step({ node: "after" })];
  const { joins, edges, nodes } = readProgress(spec, path, true);
  assert.equal(joins.get(join), "done");
  assert.ok(edges.has(edgeKey("near", "after")) && edges.has(edgeKey("far", "after")));
  assert.equal(nodes.get("after").state, "runs");
});

test("a join that is passed waits again in the next round", () => {
  const round = [step(done("near"), done("way")), step(done("far")), step(done("after"))];
  const { joins } = readProgress(spec, [input, ...round, step(done("near"), { node: "way" })], true);
  assert.equal(joins.get(join), "due");
});

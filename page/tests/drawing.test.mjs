// Where a drawing has the nodes and edges of a graph.

import assert from "node:assert/strict";
import { test } from "node:test";
import { importSource } from "./sources.mjs";

const { readDiagram } = await importSource("drawing/spec.ts");
const { layoutDiagram } = await importSource("drawing/layout.ts");
const { pathOf } = await importSource("drawing/path.ts");
const { cutToWidth, widthOf } = await importSource("drawing/width.ts");

const ask = (name, more = {}) => ({ name, ask: {}, ...more });
const expr = (name, more = {}) => ({ name, expr: {}, ...more });
const edge = (target, ...sources) => ({ sources, target });
const textsOf = (diagram) => diagram.edges.map((e) => `${e.from} ${e.join ? "=" : e.isConditional ? "." : "-"}> ${e.to}${e.label && ` (${e.label})`}`);

test("kinds of nodes", () => {
  const nodes = [ask("a"), { name: "r", remote: {} }, { name: "g", graph: {} }, expr("e"), { name: "f", function: {} }];
  assert.deepEqual(readDiagram({ nodes }).nodes.map((n) => n.kind), ["start", "ask", "remote", "graph", "expr", "function", "end"]);
  assert.deepEqual(readDiagram({}).nodes.length, 2);
});

test("edges, joins and ends", () => {
  const nodes = ["a", "b", "c"].map((n) => expr(n)).concat({ name: "w", remote: {} }, expr("go", { expr: { gotoExpr: "'a'" } }), expr("to", { destinations: ["a", "b"] }));
  const edges = [edge("a", "__start__"), edge("b", "__start__"), edge("c", "a", "b"), edge("c", "a", "b"), edge("c", "a"), edge("c", "a"), edge("gone", "a")];
  assert.deepEqual(textsOf(readDiagram({ nodes, edges })), [
    "__start__ -> a", "__start__ -> b", "a => c", "b => c", "a -> c", "c -> __end__", "to .> a (goto)", "to .> b (goto)",
  ]);
});

test("branches", () => {
  const nodes = ["a", "b", "c"].map((n) => expr(n));
  const cases = { source: "a", cases: { cases: [{ condition: "state.x > 1", targets: ["b", "c"] }, { targets: ["b", "__end__"] }] } };
  assert.deepEqual(textsOf(readDiagram({ nodes, branches: [cases] })).slice(0, 3), ["a .> b (state.x > 1, else)", "a .> c (state.x > 1)", "a .> __end__ (else)"]);
  const paths = { source: "a", router: "r", paths: { no: "c", again: "a", yes: "b" } };
  assert.deepEqual(textsOf(readDiagram({ nodes, branches: [paths] })).slice(0, 3), ["a .> a (again)", "a .> c (no)", "a .> b (yes)"]);
  assert.deepEqual(textsOf(readDiagram({ nodes, branches: [{ source: "a", expr: "x", targets: ["b"] }] })).slice(0, 1), ["a .> b"]);
  const anywhere = textsOf(readDiagram({ nodes, branches: [{ source: "__start__", workerRouter: "r" }] }));
  assert.deepEqual(anywhere.slice(0, 4), ["__start__ .> a", "__start__ .> b", "__start__ .> c", "__start__ .> __end__"]);
});

test("error handlers", () => {
  const nodes = [expr("a"), expr("b", { policy: { errorHandler: "own" } }), expr("own"), expr("common")];
  const handled = textsOf(readDiagram({ nodes, defaults: { errorHandler: "common" } })).filter((e) => e.includes("on error"));
  assert.deepEqual(handled, ["a .> common (on error)", "b .> own (on error)"]);
});

test("what differs in kind is not one edge", () => {
  const nodes = [expr("a", { policy: { errorHandler: "b" }, destinations: ["b"] }), expr("b")];
  const branches = [{ source: "a", expr: "x", targets: ["b"] }];
  assert.deepEqual(textsOf(readDiagram({ nodes, branches, edges: [edge("b", "a")] })).slice(0, 3), ["a -> b", "a .> b", "a .> b (goto, on error)"]);
});

const loop = { nodes: ["a", "b", "c", "d"].map((n) => expr(n)), edges: [edge("a", "__start__"), edge("b", "a"), edge("c", "a"), edge("d", "b", "c"), edge("a", "d"), edge("d", "d")] };

test("from top to bottom, and always alike", () => {
  const drawing = layoutDiagram(readDiagram(loop));
  const at = Object.fromEntries(drawing.nodes.map((n) => [n.name, n]));
  assert.ok(at.__start__.y < at.a.y && at.a.y < at.b.y && at.b.y === at.c.y && at.b.y < drawing.joins[0].y && drawing.joins[0].y < at.d.y);
  assert.deepEqual([at.a.width, at.a.height, at.__start__.width, at.__start__.height], [158, 42, 58, 26]);
  for (const n of drawing.nodes) {
    assert.ok(n.x - n.width / 2 >= 0 && n.x + n.width / 2 <= drawing.width && n.y - n.height / 2 >= 0 && n.y + n.height / 2 <= drawing.height, n.name);
  }
  assert.deepEqual(layoutDiagram(readDiagram(loop)), drawing);
});

test("what is left out of dagre changes no drawing", async () => {
  const whole = await importSource("drawing/layout.ts", { isWhole: true });
  for (let seed = 1; seed <= 30; seed++) {
    const diagram = readDiagram(drawGraph(seed));
    assert.deepEqual(layoutDiagram(diagram), whole.layoutDiagram(diagram), `seed ${seed}`);
  }
});

/** Returns a graph that a number stands for: with joins, branches, loops, and nodes that nothing leads to. */
function drawGraph(seed) {
  let state = seed;
  const number = (below) => (state = (state * 48271) % 0x7fffffff) % below;
  const nodes = Array.from({ length: 1 + number(24) }, (_, i) => expr(`node${i}`));
  const any = () => nodes[number(nodes.length)].name;
  for (const n of nodes) {
    if (number(6) === 0) n.destinations = [any(), "__end__"];
    if (number(9) === 0) n.policy = { errorHandler: any() };
  }
  const edges = nodes.map(() => edge(any(), ...new Set(number(4) === 0 ? [any(), any(), any()] : [any()])));
  const branches = nodes.filter(() => number(4) === 0).map((n) => ({ source: n.name, cases: { cases: [{ condition: "state.amount > 100", targets: [any(), any()] }, { targets: [any()] }] } }));
  return { nodes, edges: [edge("node0", "__start__"), ...edges], branches };
}

test("edges begin and end at their nodes", () => {
  const drawing = layoutDiagram(readDiagram(loop));
  const isAt = (p, n) => Math.abs(p.x - n.x) <= n.width / 2 + 1 && Math.abs(p.y - n.y) <= n.height / 2 + 1;
  for (const e of drawing.edges) {
    const [from, to] = [e.from, e.to].map((name) => drawing.nodes.find((n) => n.name === name));
    assert.ok(isAt(e.points[0], from) && isAt(e.points.at(-1), to), `${e.from} -> ${e.to}`);
  }
  assert.equal(drawing.joins.length, 1);
});

test("labels are on their lines, and beside one another", () => {
  const nodes = ["a", "b", "c"].map((n) => expr(n));
  const cases = [{ condition: "state.amount > 1000", targets: ["b"] }, { condition: "state.amount > 100", targets: ["c"] }, { condition: "state.again", targets: ["a"] }, { targets: ["__end__"] }];
  const drawing = layoutDiagram(readDiagram({ nodes, branches: [{ source: "a", cases: { cases } }], defaults: { errorHandler: "a" } }));
  const labels = drawing.edges.filter((e) => e.labelAt).map((e) => ({ ...e.labelAt, edge: e }));
  assert.equal(labels.length, 6);
  const touch = (a, b) => Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;
  for (const [i, at] of labels.entries()) {
    assert.ok(at.edge.from === at.edge.to || at.edge.points.some((p) => p.x === at.x && p.y === at.y), at.edge.label);
    assert.ok([...labels.slice(i + 1), ...drawing.nodes].every((other) => !touch(at, other)), at.edge.label);
  }
});

test("loops have room", () => {
  const nodes = ["a", "b", "c"].map((n) => expr(n));
  const drawing = layoutDiagram(readDiagram({ nodes, edges: nodes.flatMap((n) => [edge(n.name, "__start__"), edge(n.name, n.name)]) }));
  for (const e of drawing.edges.filter((e) => e.from === e.to)) {
    const others = drawing.nodes.filter((n) => n.name !== e.from);
    for (const p of e.points) assert.ok(p.x < drawing.width && others.every((n) => Math.abs(p.x - n.x) > n.width / 2 || Math.abs(p.y - n.y) > n.height / 2), e.from);
  }
});

test("the drawing of a node's graph is in its node, below its name", () => {
  const inner = layoutDiagram(readDiagram(loop));
  const outer = { nodes: [expr("before"), { name: "part", graph: {} }, expr("after")], edges: [edge("before", "__start__"), edge("part", "before"), edge("after", "part")] };
  const drawing = layoutDiagram(readDiagram(outer), undefined, new Map([["part", inner]]));
  const part = drawing.nodes.find((n) => n.name === "part");
  assert.deepEqual(part.inner.drawing, inner);
  assert.ok(part.inner.x >= 0 && part.inner.x + inner.width <= part.width && part.inner.y >= 42 && part.inner.y + inner.height <= part.height);
  assert.ok(drawing.nodes.filter((n) => n !== part).every((n) => !n.inner && Math.abs(n.y - part.y) >= (n.height + part.height) / 2));
  assert.deepEqual(drawing.edges.filter((e) => e.to === "part").map((e) => Math.round(e.points.at(-1).y)), [part.y - part.height / 2]);
});

test("names that objects have", () => {
  const names = ["__proto__", "constructor", "hasOwnProperty", "n0", "j1", "\u0000", "a\u0001b"];
  const spec = { nodes: names.map((n) => expr(n)), edges: names.map((n) => edge(n, "__start__")).concat(edge("n0", "__proto__", "constructor")) };
  const drawing = layoutDiagram(readDiagram(spec));
  assert.deepEqual(drawing.nodes.map((n) => n.name), ["__start__", ...names, "__end__"]);
  assert.equal(drawing.edges.length, names.length + 2 + 5);
  assert.ok(drawing.nodes.every((n) => Number.isFinite(n.x) && Number.isFinite(n.y)));
});

test("long texts are cut, and wide ones have room", () => {
  const long = "a_node_with_a_name_that_is_longer_than_a_node_may_be_in_a_drawing";
  const drawing = layoutDiagram(readDiagram({ nodes: [expr(long), expr("退款审核退款审核退款审核")], branches: [{ source: long, expr: "x", paths: { [long]: "退款审核退款审核退款审核" } }] }));
  const [, first, second] = drawing.nodes;
  assert.equal(first.name, long);
  assert.match(first.label, /^a_node_.*…$/);
  assert.ok(first.width <= 302 && second.width > 180);
  assert.match(drawing.edges[0].label, /…$/);
  assert.ok(widthOf("WWW") > widthOf("aaa") && widthOf("aaa") > widthOf("iii"));
  assert.equal(cutToWidth("abc", 3), "abc");
});

test("texts are made visible before they are measured", () => {
  const show = (text) => text.replaceAll("\u202e", "\\u{202e}");
  const drawing = layoutDiagram(readDiagram({ nodes: [expr("a\u202eb")], branches: [{ source: "a\u202eb", expr: "x", paths: { "\u202e": "a\u202eb" } }] }), show);
  assert.deepEqual([drawing.nodes[1].name, drawing.nodes[1].label, drawing.edges[0].label], ["a\u202eb", "a\\u{202e}b", "\\u{202e}"]);
});

test("paths", () => {
  assert.equal(pathOf([]), "");
  assert.equal(pathOf([{ x: 0, y: 0 }, { x: 1, y: 2.345 }]), "M0,0L1,2.3");
  assert.equal(pathOf([{ x: 0, y: 0 }, { x: 0, y: 4 }, { x: 4, y: 8 }]), "M0,0Q0,4 4,8");
  assert.equal(pathOf([{ x: 0, y: 0 }, { x: 0, y: 4 }, { x: 4, y: 8 }, { x: 4, y: 9 }]), "M0,0Q0,4 2,6Q4,8 4,9");
});

"""Draws graphs, in the form of the conformance cases."""

from __future__ import annotations

import itertools
import random
from typing import Any

from oracle.edges import Routes
from oracle.failures import add_failures
from oracle.node_bodies import draw_body, draw_private_body
from oracle.state_keys import draw_schemas, draw_state

MAIN, CHILD, GRANDCHILD = "abcdef", "k", "j"
PERSISTENCE = ["inherit", "inherit", "persist", "disabled"]


def draw_graphs(r: random.Random) -> list[dict[str, Any]]:
    """The graphs of a case, the main one last and children before their parents."""
    graphs: list[dict[str, Any]] = []
    if r.random() < 0.45:
        if r.random() < 0.2:
            graphs.append(_draw_child(r, "grandchild", GRANDCHILD, None))
        graphs.append(_draw_child(r, "child", CHILD, graphs[0] if graphs else None))
    graphs.append(_draw_main(r, graphs))
    if r.random() < 0.4:
        add_failures(r, graphs)
    return graphs


def _draw_child(r: random.Random, name: str, letter: str, below: dict[str, Any] | None) -> dict[str, Any]:
    names = [f"{letter}{i}" for i in range(r.randint(1, 3))]
    state = draw_state(r)
    nodes = {node: draw_body(r, node, state, asks=0.35) for node in names}
    if below is not None:
        nodes[names[-1]] = f"<subgraph {below['name']}>"
    elif name == "child" and r.random() < 0.15:
        target = r.choice(MAIN[1:3])
        nodes[names[-1]] = f"return Command(graph=PARENT,update={{'log':['{names[-1]} up']}},goto='{target}')"
    # In LangGraph a graph that stores nothing hides itself from the graphs inside of it, which do store.
    compiled: dict[str, Any] = {"checkpointer": r.choice(PERSISTENCE if below is None else PERSISTENCE[:-1])}
    if r.random() < 0.15:
        compiled[r.choice(["interrupt_before", "interrupt_after"])] = [r.choice(names)]
    edges: list[list[Any]] = [["START", names[0]]]
    if len(names) > 2 and r.random() < 0.4:
        edges += [["START", names[1]], [names[0], names[2]]]
    else:
        edges += [[a, b] for a, b in itertools.pairwise(names)]
    graph = {"name": name, "state": state, "nodes": nodes, "edges": edges, "compile": compiled}
    return _add_schemas(r, graph, keeps=set())


def _draw_main(r: random.Random, children: list[dict[str, Any]]) -> dict[str, Any]:
    child = children[-1] if children else None
    names = list(MAIN[: r.randint(3 if child else 2, 6)])
    state = draw_state(r)
    nodes = {name: draw_body(r, name, state, asks=0.22) for name in names}
    kept: set[str] = set()
    if child is not None:
        holder = r.choice(names)
        called = "{'log':['call'],'n':state['n'],'m':{}}"
        calls = f"x=call_sub('child',{called})\nreturn {{'log':['{holder}',str(x.get('log'))]}}"
        called_by_code = r.random() < 0.2 and not any("await " in str(graph["nodes"]) for graph in children)
        nodes[holder] = calls if called_by_code else "<subgraph child>"
        kept = {holder} if any(g["compile"]["checkpointer"] == "persist" for g in children) else set()
    if r.random() < 0.5:  # states list nodes as they were added, supersteps by name
        nodes = dict(r.sample(list(nodes.items()), len(nodes)))
    routes = Routes(r, nodes, kept)
    routes.draw(names)
    compiled: dict[str, Any] = {"checkpointer": "saver"}
    if r.random() < 0.2:
        compiled[r.choice(["interrupt_before", "interrupt_after"])] = [r.choice(names)]
    graph: dict[str, Any] = {"name": "g", "state": state, "nodes": nodes, "edges": routes.edges, "compile": compiled}
    if routes.branches:
        graph["conditional_edges"] = routes.branches
    options = {name: {"defer": True} for name in names[1:] if r.random() < 0.1}
    return _add_schemas(r, graph | ({"node_options": options} if options else {}), keeps=_branching(routes))


def _branching(routes: Routes) -> set[str]:
    """Nodes whose code their edges rely on."""
    return {b["from"] for b in routes.branches}


def _add_schemas(r: random.Random, graph: dict[str, Any], keeps: set[str]) -> dict[str, Any]:
    nodes = graph["nodes"]
    plain = [n for n, code in nodes.items() if not code.startswith("<") and "Command(" not in code and n not in keeps]
    schemas = draw_schemas(r, graph["state"], plain)
    for name in schemas.get("node_input_schema", {}):
        nodes[name] = draw_private_body(r, name)
    if "m" not in schemas.get("input_schema", ["m"]) and r.random() < 0.3:
        del schemas["input_schema"]
    return graph | schemas

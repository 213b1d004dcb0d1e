"""Lets nodes of a graph fail: once or always, with retries and with handlers."""

from __future__ import annotations

import random
from typing import Any

ERRORS = ["Boom('{0}')", "Other('{0}')", "ValueError('{0}')", "KeyError('{0}')", "TypeError('{0}')"]
SETTLE = "sleep(0.2)"
"""Siblings come to their end before a node fails: how far they come otherwise is a matter of luck."""


def add_failures(r: random.Random, graphs: list[dict[str, Any]]) -> None:
    """Lets one node of the graphs fail; changes them."""
    graph = r.choice(graphs)
    able = [name for name in graph["nodes"] if _may_fail(graphs, graph, name)]
    if not able:
        return
    name, kind = r.choice(able), r.random()
    if kind < 0.15:
        _fail_in_branch(r, graph, name)
        return
    graph["nodes"][name] = _draw_failure(r, name)
    options = graph.setdefault("node_options", {}).setdefault(name, {})
    if kind < 0.45:
        options["retry"] = {"max_attempts": r.choice([2, 3]), "initial_interval": 0.01, "jitter": False} | r.choice(
            [{"retry_on": ["Boom", "Other"]}, {"retry_on": ["ValueError"]}]
        )
    if kind < 0.3 or kind > 0.7:
        handler = _draw_handler(r, graph, name)
        if r.random() < 0.25:
            graph["node_defaults"] = {"error_handler": handler}
        else:
            options["error_handler"] = handler
    if not options:
        del graph["node_options"][name]


def _may_fail(graphs: list[dict[str, Any]], graph: dict[str, Any], name: str) -> bool:
    """Whether the node runs once in a superstep: several tasks would count their attempts together."""
    if graph["nodes"][name].startswith("<") or "Command(" in graph["nodes"][name]:
        return False
    sent = _sent_to(graphs)
    loops = {branch["from"] for branch in graph.get("conditional_edges", [])}
    holders = {n for g in graphs for n, code in g["nodes"].items() if code == f"<subgraph {graph['name']}>"}
    return name not in loops and f"'{name}'" not in sent and not any(f"'{n}'" in sent for n in holders)


def _sent_to(graphs: list[dict[str, Any]]) -> str:
    routers = [b["path"] for g in graphs for b in g.get("conditional_edges", [])]
    return "".join(code for code in [*routers, *(c for g in graphs for c in g["nodes"].values())] if "Send(" in code)


def _draw_failure(r: random.Random, name: str) -> str:
    kind = r.random()
    if kind < 0.12:
        return f"{SETTLE}\nreturn {r.choice(['5', repr('text'), '[1]'])}"
    error = r.choice(ERRORS).format(name)
    if kind < 0.3:
        return f"{SETTLE}\nraise {error}"
    times = r.randint(1, 2)
    asks = f"x=interrupt('{name}! %d'%state['n'])\n" if r.random() < 0.15 else ""
    count = f"mem.{name}=mem.{name}+1\nif mem.{name}<={times}:\n    {SETTLE}\n    raise {error}"
    return f"{asks}{count}\nreturn {{'log':['{name} ok']}}"


def _draw_handler(r: random.Random, graph: dict[str, Any], name: str) -> str:
    others = [n for n in graph["nodes"] if n != name]
    code = f"return {{'log':['{name} handled %s'%error.node]}}"
    kind = r.random()
    if kind < 0.3 and others:
        return f"return Command(update={{'log':['handled %s'%error.node]}},goto='{r.choice(others)}')"
    if kind < 0.45:  # a handler that asks is left out: LangGraph does not list its question
        return "raise Other('handler')"
    return code


def _fail_in_branch(r: random.Random, graph: dict[str, Any], name: str) -> None:
    target = r.choice(["END", *(repr(n) for n in graph["nodes"] if n != name)])
    error = r.choice(["1//0", "[][0]", "{}['x']"])
    always = r.random() < 0.5
    path = error if always else f"{target} if state['n']>1 else {error}"
    graph.setdefault("conditional_edges", []).append({"from": name, "path": path})

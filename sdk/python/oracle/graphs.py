"""Random graphs, in the form of the conformance cases."""

from __future__ import annotations

import itertools
import random
from typing import Any

MAIN = "abcdef"


def random_case(seed: int) -> dict[str, Any]:
    """The graphs of a seed; the same for the same seed."""
    r = random.Random(seed)
    graphs = []
    child = r.random() < 0.35
    if child:
        graphs.append(_child(r))
    graphs.append(_main(r, child))
    if r.random() < 0.3:
        _fail_once(r, graphs)
    return {"id": f"seed-{seed}", "graphs": graphs, "steps": []}


def _child(r: random.Random) -> dict[str, Any]:
    nodes = {f"k{i}": _body(r, f"k{i}", asks=r.random() < 0.4) for i in range(r.randint(1, 3))}
    names = list(nodes)
    edges = [["START", names[0]], *([a, b] for a, b in itertools.pairwise(names))]
    return _graph("child", nodes, edges, [], {"checkpointer": "inherit"})


def _main(r: random.Random, child: bool) -> dict[str, Any]:
    names = list(MAIN[: r.randint(2, 6)])
    nodes = {name: _body(r, name, asks=r.random() < 0.25) for name in names}
    if child:
        nodes[r.choice(names)] = "<subgraph child>"
    if r.random() < 0.5:  # states list nodes as they were added, supersteps by name
        nodes = dict(r.sample(list(nodes.items()), len(nodes)))
    edges: list[list[Any]] = [["START", names[0]]]
    branches: list[dict[str, Any]] = []
    if len(names) > 2 and r.random() < 0.3:
        edges.append(["START", names[1]])
    for at, name in enumerate(names):
        _lead_on(r, name, names[at + 1 :], nodes, edges, branches)
    if len(names) > 3 and r.random() < 0.3:
        edges.append([names[:2], names[-1]])
    options: dict[str, Any] = {}
    for name in names[1:]:
        if r.random() < 0.1:
            options[name] = {"defer": True}
    compiled: dict[str, Any] = {"checkpointer": "saver"}
    if r.random() < 0.2:
        compiled[r.choice(["interrupt_before", "interrupt_after"])] = [r.choice(names)]
    graph = _graph("g", nodes, edges, branches, compiled)
    return graph | ({"node_options": options} if options else {})


def _graph(name: str, nodes: Any, edges: Any, branches: Any, compiled: Any) -> dict[str, Any]:
    state = {"log": "list+", "n": "int+", "m": "merge"}
    graph = {"name": name, "state": state, "nodes": nodes, "edges": edges, "compile": compiled}
    return graph | ({"conditional_edges": branches} if branches else {})


def _lead_on(
    r: random.Random,
    name: str,
    later: list[str],
    nodes: dict[str, str],
    edges: list[list[Any]],
    branches: list[dict[str, Any]],
) -> None:
    if not later:
        if r.random() < 0.3:
            edges.append([name, "END"])
        return
    kind = r.random()
    target = r.choice(later[:2])
    if 0.88 <= kind < 0.95 and any(f"Send('{name}'" in b["path"] for b in branches):
        kind = 0.0  # several tasks of one node would send the same
    if kind < 0.45:
        edges.append([name, target])
    elif kind < 0.6:
        edges.extend([name, t] for t in dict.fromkeys([target, r.choice(later)]))
    elif kind < 0.72:
        branches.append({"from": name, "path": f"'{target}' if len(state['log'])%2 else '{r.choice(later)}'"})
    elif kind < 0.8:
        branches.append({"from": name, "path": f"['{target}','{r.choice(later)}']"})
    elif kind < 0.88:
        branches.append({"from": name, "path": f"'{name}' if state['n']<3 else '{target}'"})
        nodes[name] = f"return {{'log':['{name}%d'%state['n']],'n':1}}"
    elif kind < 0.95:
        first = 1000 * (MAIN.index(name) + 1)  # no two tasks of a superstep ask the same
        sends = f"[Send('{target}',{{'log':['s'],'n':{first}+i,'m':{{}}}}) for i in range({r.randint(1, 3)})]"
        branches.append({"from": name, "path": sends})
    else:
        nodes[name] = f"return Command(update={{'log':['{name}']}},goto='{target}')"


def _body(r: random.Random, name: str, *, asks: bool) -> str:
    if asks:
        if r.random() < 0.3:
            again = f"{{'q':'{name}2','x':x,'n':state['n']}}"
            return f"x=interrupt('{name}1 %d'%state['n'])\ny=interrupt({again})\nreturn {{'log':['{name}',x,y]}}"
        return f"return {{'log':['{name}:'+str(interrupt('{name}? %d'%state['n']))]}}"
    plain = [
        f"return {{'log':['{name}']}}",
        f"return {{'log':['{name}%d'%len(state['log'])],'n':1}}",
        "return None",
        f"return {{'m':{{'{name}':state['n']}}}}",
        f"return {{'log':sorted(state['m'])+['{name}']}}",
        f"write('{name}')\nreturn {{'n':2}}",
        f"return [Command(update={{'log':['{name}1']}}),{{'log':['{name}2']}}]",
    ]
    return r.choice(plain)


def _fail_once(r: random.Random, graphs: list[dict[str, Any]]) -> None:
    """Lets one node fail at first, when its siblings have come to their end: how
    far they come otherwise is a matter of luck."""
    graph = r.choice(graphs)
    nodes, loops = graph["nodes"], {b["from"] for b in graph.get("conditional_edges", [])}
    sent = "".join(b["path"] for g in graphs for b in g.get("conditional_edges", []) if "Send(" in b["path"])
    if graph["name"] == "child" and any(f"'{n}'" in sent for n, b in graphs[-1]["nodes"].items() if b.startswith("<")):
        return
    able = [n for n, body in nodes.items() if not body.startswith("<") and n not in loops and f"'{n}'" not in sent]
    if not able:
        return
    name = r.choice(able)
    fails = f"mem.{name}=mem.{name}+1\nif mem.{name}==1:\n    sleep(0.2)\n    raise Boom('{name}')"
    nodes[name] = f"{fails}\nreturn {{'log':['{name} ok']}}"

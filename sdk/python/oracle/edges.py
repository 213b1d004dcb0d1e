"""Draws how nodes lead on to each other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Routes:
    """The edges of a graph while they are drawn, and the nodes whose code they change."""

    r: random.Random
    nodes: dict[str, str]
    one_at_a_time: set[str]
    """Nodes that must not run twice in a superstep: graphs that keep their state."""
    edges: list[list[Any]] = field(default_factory=list)
    branches: list[dict[str, Any]] = field(default_factory=list)

    def draw(self, names: list[str]) -> None:
        """Edges from START to the first of the nodes, and from each to later ones."""
        r = self.r
        if r.random() < 0.12 and len(names) > 1:
            self.branches.append({"from": "START", "path": f"'{names[0]}' if state['log'] else '{names[1]}'"})
            self.edges.append(["START", names[0]])
        else:
            self.edges.append(["START", names[0]])
        if len(names) > 2 and r.random() < 0.4:
            self.edges.append(["START", names[1]])
        for at, name in enumerate(names):
            self._lead_on(name, names[at + 1 :], names.index(name) + 1)
        if len(names) > 3 and r.random() < 0.35:
            self.edges.append([names[:2], names[-1]])

    def _lead_on(self, name: str, later: list[str], number: int) -> None:
        r = self.r
        if not later:
            if r.random() < 0.3:
                self.edges.append([name, "END"])
            return
        target, other, kind = r.choice(later[:2]), r.choice(later), r.random()
        sends_again = any(f"Send('{name}'" in b["path"] for b in self.branches)
        if kind >= 0.85 and (sends_again or target in self.one_at_a_time):
            kind = 0.0  # several tasks of one node would send the same
        if kind < 0.42:
            self.edges.append([name, target])
        elif kind < 0.55:
            self.edges.extend([name, t] for t in dict.fromkeys([target, other]))
        elif kind < 0.64:
            self.branches.append({"from": name, "path": f"'{target}' if len(state['log'])%2 else '{other}'"})
        elif kind < 0.69:
            paths = {"one": target, "two": r.choice([other, "END"])}
            self.branches.append({"from": name, "path": "'one' if state['n']%2 else 'two'", "path_map": paths})
        elif kind < 0.75:
            self.branches.append({"from": name, "path": f"['{target}','{other}']"})
        elif kind < 0.81 and not self.nodes[name].startswith("<"):
            self.branches.append({"from": name, "path": f"'{name}' if state['n']<3 else '{target}'"})
            self.nodes[name] = f"return {{'log':['{name}%d'%state['n']],'n':1}}"
        elif kind < 0.85:
            self._go_to(name, target, other)
        else:
            self._send(name, target, number)

    def _go_to(self, name: str, target: str, other: str) -> None:
        if self.nodes[name].startswith("<"):
            self.edges.append([name, target])
            return
        goto = self.r.choice([f"'{target}'", f"['{target}','{other}']"])
        self.nodes[name] = f"return Command(update={{'log':['{name}']}},goto={goto})"

    def _send(self, name: str, target: str, number: int) -> None:
        first = 1000 * number  # no two tasks of a superstep ask the same
        sends = f"[Send('{target}',{{'log':['s'],'n':{first}+i,'m':{{}}}}) for i in range({self.r.randint(1, 3)})]"
        if self.r.random() < 0.35 and not self.nodes[name].startswith("<"):
            self.nodes[name] = f"return Command(update={{'log':['{name}']}},goto={sends})"
        else:
            self.branches.append({"from": name, "path": sends})

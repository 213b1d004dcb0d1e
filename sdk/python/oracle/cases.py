"""Random cases: graphs, and what a caller does with them."""

from __future__ import annotations

import random
from typing import Any

from oracle.graphs import draw_graphs
from oracle.script import draw_turns


def random_case(seed: int) -> dict[str, Any]:
    """The case of a seed without its steps; the same for the same seed."""
    r = random.Random(seed)
    graphs = draw_graphs(r)
    return {"id": f"seed-{seed}", "graphs": graphs, "turns": draw_turns(r, graphs), "steps": []}

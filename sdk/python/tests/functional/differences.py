"""Where graphd does something else than LangGraph in a program, and why."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A change of what LangGraph tells; ``apply`` fails when it changes nothing."""

    because: str
    change: Callable[[Any], Any]

    def apply(self, told: Any) -> Any:
        """What graphd tells."""
        changed = self.change(copy.deepcopy(told))
        assert changed != told, f"no difference any more: {self.because}"
        return changed


def _add_input_steps(told: Any) -> Any:
    """With the superstep in which an input is taken."""
    at = next(i for i, one in enumerate(told) if isinstance(one, list) and one and one[0] == [[8, 48], [], 2, "loop"])
    told[at] = [
        [[8, 48], [], 4, "loop"],
        [[6, 36], ["flow"], 3, "loop"],
        [[6, 36], ["__start__"], 2, "input"],
        [[6, 36], [], 1, "loop"],
        [None, ["flow"], 0, "loop"],
        [None, ["__start__"], -1, "input"],
    ]
    return told


def _drop_repeated(told: Any) -> Any:
    """Without the items that an earlier stream has shown."""
    told[1] = [item for item in told[1] if item not in told[0]]
    return told


DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    "tasks_one_after_the_other": (
        Difference("taking the input of an entrypoint is a superstep of its own, as in every graph", _add_input_steps),
    ),
    "items_before_a_question": (
        Difference("what a node shows before its question is not shown again with the answer", _drop_repeated),
    ),
}

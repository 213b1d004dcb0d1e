"""Names with a meaning of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphd.compatibility.imports import explain_absent_names

START: Final = "__start__"
"""Where a run enters the graph."""

END: Final = "__end__"
"""Where a branch of the graph stops."""

INTERRUPT: Final = "__interrupt__"
"""Key under which open questions show up in results and events."""

ROOT: Final = "__root__"
"""Channel of a graph whose whole state is one value."""

TASK_EVENT: Final = "graphd.task"
"""Name of the custom events that tell of the tasks which a node calls."""

TAG_HIDDEN: Final = "langsmith:hidden"
"""Tag of steps that tracing leaves out."""

TAG_NOSTREAM: Final = "nostream"
"""Tag of model calls whose tokens are not streamed."""

NAMESPACE_SEPARATOR: Final = "|"
"""Separates the levels of a namespace."""

TASK_SEPARATOR: Final = ":"
"""Separates a node from its task in one level of a namespace."""

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

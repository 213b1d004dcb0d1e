"""Programs without a graph: an entrypoint calls tasks, and no finished task runs again."""

from graphd.func.entrypoint import entrypoint
from graphd.func.task import task

__all__ = ["entrypoint", "task"]

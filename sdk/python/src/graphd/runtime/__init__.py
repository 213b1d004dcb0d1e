"""What the code of a node can know of its run, and do in it."""

from graphd.runtime.info import ExecutionInfo, RunControl, Runtime
from graphd.runtime.task import get_runtime, scope

__all__ = ["ExecutionInfo", "RunControl", "Runtime", "get_runtime", "scope"]

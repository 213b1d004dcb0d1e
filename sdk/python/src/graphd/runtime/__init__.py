"""What the code of a node can know of its run, and do in it."""

from typing import TYPE_CHECKING

from graphd.compatibility.imports import explain_absent_names
from graphd.runtime.info import ExecutionInfo, RunControl, Runtime
from graphd.runtime.task import get_runtime, scope

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = ["ExecutionInfo", "RunControl", "Runtime", "get_runtime", "scope"]

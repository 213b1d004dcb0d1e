"""What every graph that can be run is, under LangGraph's name."""

from typing import TYPE_CHECKING

from graphd.compatibility.imports import explain_absent_names
from graphd.compiled import Pregel

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = ["Pregel"]

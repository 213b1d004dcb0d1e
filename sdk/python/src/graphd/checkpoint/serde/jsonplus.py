"""LangGraph's serializer, from the package langgraph-checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphd.compatibility.imports import explain_absent_names
from graphd.packages import require_module

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
else:
    JsonPlusSerializer = require_module("langgraph.checkpoint.serde.jsonplus", __name__).JsonPlusSerializer
    __getattr__ = explain_absent_names(__name__)

__all__ = ["JsonPlusSerializer"]

"""LangGraph's serializer that encrypts, from the package langgraph-checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphd.packages import require_module

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
else:
    EncryptedSerializer = require_module("langgraph.checkpoint.serde.encrypted", __name__).EncryptedSerializer

__all__ = ["EncryptedSerializer"]

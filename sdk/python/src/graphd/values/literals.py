"""The words and kinds that arguments take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

All = Literal["*"]
StreamMode = Literal["values", "updates", "checkpoints", "tasks", "debug", "messages", "custom"]
StreamWriter = Callable[[Any], None]
Durability = Literal["sync", "async", "exit"]
Checkpointer = Any

"""What the code of a node can ask for, wherever it is called from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphd.runtime.task import required_task


def get_config() -> dict[str, Any]:
    """The config of the run."""
    return required_task("get_config()").config


def get_stream_writer() -> Callable[[Any], None]:
    """A function that sends events on the "custom" stream."""
    return required_task("get_stream_writer()").runtime.stream_writer


def get_store() -> Any:
    """The store that the graph was compiled with."""
    store = required_task("get_store()").runtime.store
    if store is None:
        raise RuntimeError("the graph was compiled without a store")
    return store


__all__ = ["get_config", "get_store", "get_stream_writer"]

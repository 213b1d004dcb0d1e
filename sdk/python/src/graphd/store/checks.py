"""What a store refuses of the operations of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_KINDS = {"GetOp", "SearchOp", "ListNamespacesOp", "PutOp"}


def kind_of(op: Any) -> str:
    """The name of an operation's class: the operations may be LangGraph's."""
    return type(op).__name__


def check_operations(ops: Iterable[Any]) -> list[Any]:
    """The operations; ValueError or TypeError for what is none, or is wrong about one."""
    checked = list(ops)
    for op in checked:
        kind = kind_of(op)
        if kind not in _KINDS:
            raise ValueError(f"{op!r} is no operation of a store; there are {', '.join(sorted(_KINDS))}")
        if kind == "PutOp" and op.value is not None and not isinstance(op.value, Mapping):
            raise TypeError(f"the value of {op.key!r} is {op.value!r}; an object (a dict) is needed")
        for name in ("limit", "offset"):
            if getattr(op, name, 0) < 0:
                raise ValueError(f"{name} is {getattr(op, name)}; it must not be negative")
    return checked


__all__ = ["check_operations", "kind_of"]

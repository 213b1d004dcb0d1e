"""Namespaces: which are valid, and which match a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphd.store.operations import MatchCondition, Namespace, Op

_RESERVED = "langgraph"


class InvalidNamespaceError(ValueError):
    """A namespace is none: the text says what is wrong."""


def check_new_namespace(namespace: Any) -> None:
    """Raises InvalidNamespaceError for a namespace that nothing can be put into."""
    check_labels(namespace)
    if not namespace:
        raise InvalidNamespaceError("the namespace is empty: give it at least one label")
    if namespace[0] == _RESERVED:
        raise InvalidNamespaceError(f"namespace {namespace!r}: the first label must not be {_RESERVED!r}")


def check_labels(namespace: Any) -> None:
    """Raises InvalidNamespaceError for labels that there can't be."""
    if isinstance(namespace, str) or not isinstance(namespace, Iterable):
        raise InvalidNamespaceError(f"namespace {namespace!r}: a tuple of texts is needed")
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidNamespaceError(f"namespace {namespace!r}: label {label!r} is no text")
        if not label:
            raise InvalidNamespaceError(f"namespace {namespace!r} has an empty label")
        if "." in label or "\x00" in label:
            raise InvalidNamespaceError(f"namespace {namespace!r}: label {label!r} has a period or a NUL in it")


def validate_op_namespace(op: Op) -> None:
    """Raises InvalidNamespaceError when the labels of an operation are not valid.

    The methods of stores do that themselves; it is for stores whose ``batch`` is called directly.
    """
    match type(op).__name__:
        case "GetOp" | "PutOp":
            check_labels(op.namespace)  # type: ignore[union-attr]
        case "SearchOp":
            check_labels(op.namespace_prefix)  # type: ignore[union-attr]
        case "ListNamespacesOp":
            for condition in op.match_conditions or ():  # type: ignore[union-attr]
                check_labels(condition.path)


def matches_condition(namespace: Namespace, condition: MatchCondition) -> bool:
    """The namespace begins, or ends, as the condition says."""
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"match_type {condition.match_type!r}: want 'prefix' or 'suffix'")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


__all__ = ["InvalidNamespaceError", "check_labels", "check_new_namespace", "matches_condition", "validate_op_namespace"]

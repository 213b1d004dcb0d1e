"""Which values a filter lets through."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_EXACT: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}


def passes_filter(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """The value has all that the filter names.

    ValueError is raised for an unknown operator; ValueError or TypeError where an operator compares what is no number.
    """
    return all(_is_like(value.get(key), part, key) for key, part in (wanted or {}).items())


def _is_like(value: Any, wanted: Any, key: str) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compare(value, name, operand, key) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_is_like(value.get(k), w, f"{key}.{k}") for k, w in wanted.items())
    if isinstance(wanted, (list, tuple)):
        is_list = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return is_list and all(_is_like(v, w, key) for v, w in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compare(value: Any, name: str, operand: Any, key: str) -> bool:
    if name in _EXACT:
        return bool(_EXACT[name](value, operand))
    if name not in _NUMERIC:
        raise _refuse_operator(name, key)
    try:
        return _NUMERIC[name](float(value), float(operand))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"filter of {key!r}: {name} compares numbers, not {value!r} and {operand!r}") from None


def _refuse_operator(name: str, key: str) -> ValueError:
    return ValueError(f"filter of {key!r}: unknown operator {name!r}; there are {', '.join([*_EXACT, *_NUMERIC])}")


def check_operators(wanted: Mapping[str, Any] | None) -> None:
    """Raises ValueError for an unknown operator in a filter, before anything is compared."""
    for key, part in (wanted or {}).items():
        _check_part(part, key)


def _check_part(part: Any, key: str) -> None:
    if isinstance(part, Mapping) and any(str(name).startswith("$") for name in part):
        for name in part:
            if name not in _EXACT and name not in _NUMERIC:
                raise _refuse_operator(name, key)
    elif isinstance(part, Mapping):
        for name, inner in part.items():
            _check_part(inner, f"{key}.{name}")
    elif isinstance(part, (list, tuple)):
        for inner in part:
            _check_part(inner, key)


__all__ = ["check_operators", "passes_filter"]

"""The parts of questions and answers that not everybody sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_MOST, _LONGEST = 16, 256


def check_secret(pointers: Iterable[str]) -> tuple[str, ...]:
    """The pointers of the secret parts; ValueError for what the server would refuse."""
    if isinstance(pointers, str):
        raise ValueError(f"secret must be a list, like [{pointers!r}]")
    checked = tuple(pointers)
    if len(checked) > _MOST:
        raise ValueError(f"secret has {len(checked)} pointers; at most {_MOST} are allowed")
    for at, pointer in enumerate(checked):
        if not isinstance(pointer, str) or not _POINTER.fullmatch(pointer):
            raise ValueError(
                f"secret has {pointer!r}; it takes JSON pointers like '/card/number', and '' for the whole"
            )
        if len(pointer.encode()) > _LONGEST:
            raise ValueError(f"secret has a pointer of {len(pointer.encode())} bytes; at most {_LONGEST} are allowed")
        for other in checked[:at]:
            if f"{pointer}/".startswith(f"{other}/") or f"{other}/".startswith(f"{pointer}/"):
                raise ValueError(f"secret has {other!r} and {pointer!r}, which overlap: leave out the longer one")
    return checked


def hide_parts(value: Any, pointers: Sequence[str]) -> tuple[Any, bool]:
    """A JSON value with a mark in the place of each secret part, and whether there was one. Changes the value."""
    found = False
    for pointer in pointers:
        if not pointer:
            return _mark(), True
        path = [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]
        found = _hide_path(value, path) or found
    return value, found


def _mark() -> dict[str, bool]:
    return {"__redacted__": True}


def _hide_path(value: Any, path: list[str]) -> bool:
    first, rest = path[0], path[1:]
    at: Any
    if isinstance(value, dict) and first in value:
        at = first
    elif isinstance(value, list) and _INDEX.fullmatch(first) and int(first) < len(value):
        at = int(first)
    else:
        return False
    if rest:
        return _hide_path(value[at], rest)
    value[at] = _mark()
    return True

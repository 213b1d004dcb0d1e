"""Paths into values, such as ``chapters[*].title``: which texts of an item are embedded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WHOLE = "$"
"""The path of a value as a whole."""
_TOKEN = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^.\[{]+")


def tokenize_path(path: str) -> list[str]:
    """The parts of a path: keys, ``[n]``, ``[*]``, ``*``, and ``{key,other.key}`` for several."""
    return _TOKEN.findall(path)


def get_text_at_path(obj: Any, path: str | Sequence[str]) -> list[str]:
    """The texts that a path leads to; none where there is nothing.

    Numbers and booleans are texts as they print, lists and objects as JSON.
    """
    if not path or path == WHOLE:
        return [_to_json(dict(obj) if isinstance(obj, Mapping) else obj)]
    tokens = tokenize_path(path) if isinstance(path, str) else list(path)
    return [text for found in _follow(obj, tokens) for text in _to_texts(found)]


def _follow(value: Any, tokens: Sequence[str]) -> Iterator[Any]:
    if not tokens:
        yield value
        return
    for inner, rest in _take_token(value, tokens[0], tokens[1:]):
        yield from _follow(inner, rest)


def _take_token(value: Any, token: str, rest: Sequence[str]) -> Iterator[tuple[Any, Sequence[str]]]:
    """The values that one part of a path leads to, each with what is left of the path."""
    if token.startswith("["):
        yield from ((item, rest) for item in _select_items(value, token[1:-1]))
    elif token.startswith("{"):
        for name in token[1:-1].split(","):
            yield value, tokenize_path(name.strip())  # nothing follows several keys
    elif token == "*":
        items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        yield from ((item, rest) for item in items)
    elif isinstance(value, Mapping) and token in value:
        yield value[token], rest


def _select_items(value: Any, index: str) -> list[Any]:
    if not isinstance(value, list):
        return []
    if index == "*":
        return value
    try:
        return [value[int(index)]]
    except (ValueError, IndexError):
        return []


def _to_texts(value: Any) -> list[str]:
    if isinstance(value, (str, int, float, bool)):
        return [str(value)]
    return [_to_json(value)] if isinstance(value, (list, dict)) else []


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


__all__ = ["WHOLE", "get_text_at_path", "tokenize_path"]

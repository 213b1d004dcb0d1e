"""Compares what happened with what a case expects.

Ids are symbols: cp1, t1 and int1 stand for the same real id wherever they
stand in one case, and for different ids than cp2, t2 and int2.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

SYMBOL = re.compile(r"^(cp|t|int)\d+$")
ANY = {"<ts>", "<uuid>", "<error>"}
ANYTHING = "<anything>"
UNORDERED = {"__interrupt__", "interrupts"}

Bindings = dict[str, str]

# How many bindings are followed at the same time: those of twice four tasks that look alike.
MOST_POSSIBLE = 24 * 24


def match(expected: Any, actual: Any, known: Bindings, key: str = "") -> Bindings | None:
    """The bindings under which both are equal; None when there are none."""
    if isinstance(expected, str):
        if expected == ANYTHING:
            return known
        if key == "error" and "(" not in expected and isinstance(actual, str):
            actual = actual.partition("(")[0]  # the type of an error alone
        return _match_text(expected, actual, known)
    if isinstance(expected, dict):
        return _match_dict(expected, actual, known)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return None
        if key in UNORDERED:
            return match_unordered(expected, actual, known)
        for one, other in zip(expected, actual, strict=True):
            if (bound := match(one, other, known)) is None:
                return None
            known = bound
        return known
    same = type(expected) is type(actual) or {type(expected), type(actual)} == {int, float}
    return known if same and expected == actual else None


def _match_text(expected: str, actual: Any, known: Bindings) -> Bindings | None:
    if not isinstance(actual, str):
        return None
    if expected in ANY:
        return known if actual else None
    if SYMBOL.match(expected):
        return bind(expected, actual, known)
    parts = re.split(r"([:|])", expected)
    if len(parts) > 1 and any(SYMBOL.match(p) or p == "<task>" for p in parts):
        return _match_parts(parts, re.split(r"([:|])", actual), known)
    return known if expected == actual else None


def _match_parts(expected: list[str], actual: list[str], known: Bindings) -> Bindings | None:
    if len(expected) != len(actual):
        return None
    for one, other in zip(expected, actual, strict=True):
        bound = bind(one, other, known) if SYMBOL.match(one) else (known if one in (other, "<task>") else None)
        if bound is None:
            return None
        known = bound
    return known


def bind(symbol: str, real: str, known: Bindings) -> Bindings | None:
    """Binds a symbol to an id, unless either is bound otherwise."""
    if symbol in known:
        return known if known[symbol] == real else None
    kind = symbol.rstrip("0123456789")
    if any(r == real and s.rstrip("0123456789") == kind for s, r in known.items()):
        return None
    return {**known, symbol: real}


def _match_dict(expected: dict[str, Any], actual: Any, known: Bindings) -> Bindings | None:
    expected = {substitute(key, known) if ":" in key else key: value for key, value in expected.items()}
    if not isinstance(actual, dict) or expected.keys() != actual.keys() | {
        key for key, value in expected.items() if value == ANYTHING
    }:
        return None
    copied = (expected.get("metadata") or {}).get("source") == "fork" if "next" in expected else False
    for key, value in expected.items():
        if copied and key in ("next", "tasks") and isinstance(value, list) and isinstance(actual[key], list):
            bound = match_unordered(value, actual[key], known)
        else:
            bound = match(value, actual.get(key), known, key)
        if bound is None:
            return None
        known = bound
    return known


def match_unordered(expected: list[Any], actual: list[Any], known: Bindings) -> Bindings | None:
    """Like match for lists whose order means nothing."""
    return next(_unordered(expected, actual, known), None)


def _unordered(expected: list[Any], actual: list[Any], known: Bindings) -> Iterator[Bindings]:
    """All bindings under which the lists have equal items."""
    if len(expected) != len(actual):
        return
    if not expected:
        yield known
        return
    for at, candidate in enumerate(actual):
        if candidate in actual[:at]:
            continue  # equal items give equal bindings
        if (bound := match(expected[0], candidate, known)) is not None:
            yield from _unordered(expected[1:], [*actual[:at], *actual[at + 1 :]], bound)


def match_groups(expected: list[Any], actual: list[Any], sizes: list[int] | None, known: Bindings) -> list[Bindings]:
    """Compares group by group: inside of one the order means nothing. The bindings are several where tasks of a
    group look alike; only what is shown later tells which of them is which."""
    if len(expected) != len(actual):
        return []
    sizes = sizes or [1] * len(expected)
    if sum(sizes) != len(expected):
        raise ValueError(f"the groups are of {sum(sizes)} items, but {len(expected)} are expected")
    possible, at = [known], 0
    for size in sizes:
        wanted, got = expected[at : at + size], actual[at : at + size]
        possible = distinct(bound for before in possible for bound in _unordered(wanted, got, before))
        at += size
    return possible


def distinct(bindings: Iterable[Bindings]) -> list[Bindings]:
    """The first of the bindings that differ."""
    found: dict[frozenset[tuple[str, str]], Bindings] = {}
    for bound in bindings:
        found.setdefault(frozenset(bound.items()), bound)
        if len(found) == MOST_POSSIBLE:
            break
    return list(found.values())


def substitute(value: Any, known: Bindings) -> Any:
    """Replaces the symbols of an input by their ids."""
    if isinstance(value, str):
        return "".join(known.get(p, p) if SYMBOL.match(p) else p for p in re.split(r"([:|])", value))
    if isinstance(value, list):
        return [substitute(v, known) for v in value]
    if isinstance(value, dict):
        return {substitute(k, known): substitute(v, known) for k, v in value.items()}
    return value


def symbols_in(value: Any) -> Iterator[str]:
    """The symbols of an expectation."""
    if isinstance(value, str) and SYMBOL.match(value):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(symbols_in(v) for v in value.values())
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(symbols_in(v) for v in value)

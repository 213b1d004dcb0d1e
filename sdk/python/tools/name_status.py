"""Which names of LangGraph graphd has: there, differs, or not."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graphd.compatibility.reasons import ABSENT, ABSENT_MEMBERS, DIFFERS, MEMBERS_OF, MOVED, Absence

Parameters = Callable[[Any], list[str] | None]


@dataclass(frozen=True)
class NameStatus:
    """One name of a module, or member of a class, of LangGraph."""

    owner: str
    """Its module or class, below langgraph."""
    name: str
    is_member: bool
    state: Literal["there", "differs", "not"]
    place: str
    """The module of graphd where it is, or would be."""
    missing: tuple[str, ...]
    """Parameters of LangGraph that it does not take, or takes in another order."""
    difference: str | None
    absence: Absence | None
    has_own_reason: bool
    """The reason is for this name, not for all others of its module or class."""

    @property
    def path(self) -> str:
        """Owner and name."""
        return f"{self.owner}.{self.name}"

    def problems(self) -> Iterator[str]:
        """What the table of reasons lacks or has in excess."""
        if self.state == "not" and self.absence is None:
            yield f"{self.path} is not there: say why in ABSENT or ABSENT_MEMBERS, or add it"
        if self.missing and self.difference is None:
            yield f"{self.path} does not take {', '.join(self.missing)} as LangGraph does: say so in DIFFERS, or add it"
        if self.state != "not" and self.absence is not None and self.has_own_reason:
            yield f"{self.path} is there: remove its reason from ABSENT or ABSENT_MEMBERS"


def read_status(record: Mapping[str, Any], parameters: Parameters) -> list[NameStatus]:
    """The status of every name of the record."""
    found = []
    for module, names in record["modules"].items():
        reasons = ABSENT.get(module, {})
        for name, expected in names.items():
            found.append(_read_name(module, name, expected, reasons, parameters))
    for path, members in record["classes"].items():
        kind = _find_class(path)
        if kind is not None:
            reasons = ABSENT_MEMBERS.get(path) or _shared_reasons(path)
            for name, expected in members.items():
                found.append(_build_status(path, name, kind, expected, reasons, parameters, path, is_member=True))
    return found


def find_unused_reasons(statuses: list[NameStatus], record: Mapping[str, Any]) -> Iterator[str]:
    """The reasons for what LangGraph has not. It may have modules that are not installed."""
    for table, owners in (("ABSENT", ABSENT), ("ABSENT_MEMBERS", ABSENT_MEMBERS)):
        known = record["modules"] if table == "ABSENT" else record["classes"]
        for owner, entries in owners.items():
            for name in " ".join(entries).split():
                if name != "*" and name not in known.get(owner, {}):
                    yield f"{table}: LangGraph has no {owner}.{name}"
    used = {path for s in statuses if s.state == "differs" for path in (s.path, f"{s.place}.{s.name}")}
    yield from (f"DIFFERS: {path} is not there, or not in LangGraph" for path in DIFFERS if path not in used)


def _read_name(
    module: str, name: str, expected: list[str] | None, reasons: Mapping[str, Absence], parameters: Parameters
) -> NameStatus:
    for place in (module, MOVED.get(module, module)):
        holder = _import_module(place)
        if holder is not None and hasattr(holder, name):
            return _build_status(module, name, holder, expected, reasons, parameters, place, is_member=False)
    return _build_status(module, name, object(), expected, reasons, parameters, module, is_member=False)


def _build_status(
    owner: str,
    name: str,
    holder: Any,
    expected: list[str] | None,
    reasons: Mapping[str, Absence],
    parameters: Parameters,
    place: str,
    *,
    is_member: bool,
) -> NameStatus:
    own = next((reason for names, reason in reasons.items() if name in names.split()), None)
    absence = own or reasons.get("*")
    if not hasattr(holder, name):
        return NameStatus(owner, name, is_member, "not", place, (), None, absence, own is not None)
    found = getattr(holder, name)
    missing = () if _passes_all_on(found) else _missing_parameters(expected, parameters(found))
    difference = DIFFERS.get(f"{place}.{name}", DIFFERS.get(f"{owner}.{name}"))
    state: Literal["there", "differs"] = "there" if difference is None else "differs"
    return NameStatus(owner, name, is_member, state, place, missing, difference, absence, own is not None)


def _passes_all_on(found: Any) -> bool:
    """Whether it hands all arguments to the method of LangChain that has its name."""
    try:
        kinds = {one.kind for one in inspect.signature(found).parameters.values()}
    except (TypeError, ValueError):
        return False
    return {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds


def _missing_parameters(expected: list[str] | None, here: list[str] | None) -> tuple[str, ...]:
    """graphd may have more, behind those that LangGraph has."""
    if not expected:
        return ()
    if here is None:
        return tuple(one.partition(" ")[0] for one in expected)
    kept = [one for one in here if one in expected]
    if kept == expected:
        return ()
    return tuple(one.partition(" ")[0] for one in expected if one not in here) or ("the order of its parameters",)


def _shared_reasons(path: str) -> Mapping[str, Absence]:
    return next(({"*": reason} for begin, reason in MEMBERS_OF.items() if path.startswith(begin)), {})


def _find_class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    for place in (module, MOVED.get(module, module)):
        if (holder := _import_module(place)) is not None and hasattr(holder, name):
            return getattr(holder, name)
    return None


def _import_module(name: str) -> Any:
    try:
        return importlib.import_module(f"graphd.{name}")
    except ModuleNotFoundError:
        return None

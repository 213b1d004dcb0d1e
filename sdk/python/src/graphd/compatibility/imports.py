"""What an import of an absent name says."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from typing import Any

from graphd.compatibility.reasons import ABSENT, MOVED, Absence

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def find_absence(module: str, name: str) -> Absence | None:
    """Why a name of a module of LangGraph is absent; None for a name that is not in the table."""
    entries = ABSENT.get(module, {})
    return next((reason for names, reason in entries.items() if name in names.split()), None)


def explain_absent_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module.

    ``from … import`` of an absent name raises ImportError with the reason, ``module.name`` AttributeError: the import
    statement drops the text of an AttributeError, and hasattr lets no ImportError pass.
    """
    below = module.removeprefix("graphd").removeprefix(".")

    def __getattr__(name: str) -> Any:
        absence = find_absence(below, name)
        if absence is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        text = f"graphd has no {below}.{name}: {absence}"
        caller = sys._getframe(1)
        if caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM:
            raise ImportError(text, name=module)
        raise AttributeError(text, name=name)

    return __getattr__


class AbsentModuleFinder:
    """Says of modules of LangGraph that graphd does not have why that is. It is asked last."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """None for other modules; raises ModuleNotFoundError for these."""
        del path, target
        if not fullname.startswith("graphd."):
            return None
        below = fullname.removeprefix("graphd.")
        lines = list(_explain_module(below))
        if not lines:
            return None
        raise ModuleNotFoundError("\n  ".join([f"graphd has no module {fullname}", *lines]), name=fullname)


def _explain_module(module: str) -> Iterator[str]:
    for one, place in MOVED.items():
        if one == module or one.startswith(f"{module}."):
            yield f"{one}: import its names from graphd.{place}"
    names_by_reason: dict[Absence, list[str]] = {}
    for one, entries in ABSENT.items():
        if one == module or one.startswith(f"{module}."):
            for names, reason in entries.items():
                names_by_reason.setdefault(reason, []).append(_describe_names(one, names))
    for reason, described in names_by_reason.items():
        yield f"{', '.join(described)}: {reason}"


def _describe_names(module: str, names: str) -> str:
    return module if names == "*" else f"{module}.{', '.join(names.split())}"


def install_finder() -> None:
    """Has imports of absent modules explained; done once."""
    if AbsentModuleFinder not in sys.meta_path:
        sys.meta_path.append(AbsentModuleFinder)

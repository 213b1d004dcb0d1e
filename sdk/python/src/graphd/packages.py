"""Packages that the SDK uses where they are installed, and never depends on."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from graphd.errors import MissingPackageError

_DISTRIBUTIONS = {"langchain_core": "langchain-core", "langgraph": "langgraph-checkpoint"}
"""By module: what pip installs for it. Of langgraph only the serializers of langgraph-checkpoint are used."""


def require_module(name: str, needed_by: str) -> Any:
    """The module; MissingPackageError where its package is not installed."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # it is installed, and misses something itself
        raise MissingPackageError(needed_by, _DISTRIBUTIONS.get(package, package)) from None


def imported_attribute(module: str, name: str) -> Any:
    """What a module has under a name, None where the program has not imported it."""
    return getattr(sys.modules.get(module), name, None)


def is_installed(package: str) -> bool:
    """The package can be imported."""
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False

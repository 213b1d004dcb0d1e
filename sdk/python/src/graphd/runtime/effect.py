"""The effects behind memos, and the keys that name them to other systems."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import TypeVar

from graphd.runtime.replay import Place
from graphd.runtime.task import Host

T = TypeVar("T")
_PARAMETER = "idempotency_key"
_DIGITS = 32


def idempotency_key(thread: str, task: str, place: Place) -> str:
    """The key of the effect at a place of a task: the same in every language."""
    digest = hashlib.sha256()
    for part in (thread, task, place.scope, place.key, str(place.index)):
        text = part.encode()
        digest.update(b"%d:%s," % (len(text), text))
    return digest.hexdigest()[:_DIGITS]


def call_effect(fn: Callable[..., T], host: Host, place: Place) -> T:
    """Calls the function of a memo, with its key if it has a parameter for it."""
    if not _takes_key(fn):
        return fn()
    return fn(**{_PARAMETER: idempotency_key(host.thread, host.task, place)})


def _takes_key(fn: Callable[..., object]) -> bool:
    try:
        parameter = inspect.signature(fn).parameters.get(_PARAMETER)
    except (TypeError, ValueError):  # a builtin
        return False
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)

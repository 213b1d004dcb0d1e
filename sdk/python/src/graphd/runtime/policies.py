"""Which failures are worth a second attempt, and which inputs are the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_PERMANENT = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)


def default_retry_on(error: Exception) -> bool:
    """Retries trouble of the network and of servers, not mistakes of the code."""
    if isinstance(error, ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return 500 <= status < 600
    return not isinstance(error, _PERMANENT)


def default_cache_key(*args: Any, **kwargs: Any) -> str:
    """Digests the arguments of a node, whatever the order of their keys."""
    text = json.dumps([args, kwargs], sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

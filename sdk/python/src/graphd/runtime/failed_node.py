"""The exceptions of nodes that ran in another process."""

from __future__ import annotations

import ast
import builtins

from graphd._gen.v1 import payload_pb2
from graphd.errors import RemoteNodeError
from graphd.names import public_name


def restore_error(failure: payload_pb2.Failure) -> Exception:
    """The exception of a node that ran elsewhere: a built-in one as itself, others as RemoteNodeError."""
    known = getattr(builtins, failure.type, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(_argument_of(known, failure.message))
        except TypeError:  # needs more than a message
            pass
    return RemoteNodeError(
        failure.message, type=failure.type, node=public_name(failure.node), reason=failure.reason, stack=failure.stack
    )


def _argument_of(kind: type[Exception], message: str) -> object:
    """What the exception was made with. A KeyError says the repr of its key, all others say what they were given."""
    if not issubclass(kind, KeyError):
        return message
    try:
        return ast.literal_eval(message)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return message

"""Names that differ between the program and the server.

The server reserves node names that begin with two underscores; LangGraph gives
such names to error handlers.
"""

from __future__ import annotations

HANDLER_PREFIX = "__error_handler__"
DEFAULT_HANDLER = "__default_error_handler__"
_WIRE_PREFIX = "error handler of "
_WIRE_DEFAULT = "default error handler"


def wire(node: str) -> str:
    """The name of a node in the server."""
    if node == DEFAULT_HANDLER:
        return _WIRE_DEFAULT
    if node.startswith(HANDLER_PREFIX):
        return _WIRE_PREFIX + node[len(HANDLER_PREFIX) :]
    return node


def public(node: str) -> str:
    """The name of a node in the program."""
    if node == _WIRE_DEFAULT:
        return DEFAULT_HANDLER
    if node.startswith(_WIRE_PREFIX):
        return HANDLER_PREFIX + node[len(_WIRE_PREFIX) :]
    return node

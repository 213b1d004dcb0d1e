"""What exceptions say of themselves, in a form that can be sent.

Exceptions are other people's code: the text of one may be of any length, have
parts of file names that are no text, or raise an exception itself.
"""

from __future__ import annotations

import sys
import traceback

from graphd._gen.v1 import payload_pb2
from graphd.errors import RemoteNodeError

# In bytes. The server cuts longer ones in the same way.
_LONGEST_KIND = 128
_LONGEST_TEXT = 4096
_LONGEST_STACK = 8192


def kind_of(error: BaseException) -> str:
    """The name of its class; of a failure in a called graph, that of the exception there."""
    name = error.type if isinstance(error, RemoteNodeError) and error.type else type(error).__name__
    return _truncate_text(_escape_surrogates(name), _LONGEST_KIND)


def text_of(error: BaseException) -> str:
    """What it says; in place of a text that can't be had, why."""
    try:
        said = str(error)
    except Exception as silent:
        said = f"<the text of the exception can't be had: its __str__ raised {type(silent).__name__}>"
    return _truncate_text(_escape_surrogates(said), _LONGEST_TEXT)


def stack_of(error: BaseException) -> str:
    """The end of its traceback."""
    try:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    except Exception:  # of its own, or of an exception behind it
        lines = traceback.format_tb(error.__traceback__)
    return _escape_surrogates("".join(lines)[-_LONGEST_STACK:])


def add_note(error: BaseException, note: str) -> None:
    """Shows a note below the text of an exception, once; nothing before Python 3.11, which has no notes."""
    if sys.version_info >= (3, 11) and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def matches_failure(failure: payload_pb2.Failure, error: BaseException) -> bool:
    """The failure came of an exception like this."""
    return failure.type == kind_of(error) and failure.message == text_of(error)


def _escape_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _truncate_text(text: str, longest: int) -> str:
    data = text.encode()
    if len(data) <= longest:
        return text
    return data[: longest - len("…".encode())].decode(errors="ignore") + "…"

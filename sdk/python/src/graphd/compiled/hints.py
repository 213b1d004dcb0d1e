"""What helps, in notes below errors whose texts are LangGraph's."""

from __future__ import annotations

from typing import TypeVar

from graphd.runtime.exception_text import add_note

Error = TypeVar("Error", bound=Exception)


def names_no_thread(error: Error) -> Error:
    """The error of a config without a thread."""
    add_note(error, "name the thread: {'configurable': {'thread_id': 'order-1'}}")
    return error


def keeps_no_threads(error: Error) -> Error:
    """The error of a graph whose runs keep no state."""
    add_note(
        error,
        "compile() keeps no state: compile(server='host:port'), or compile(InMemorySaver()) for threads that end "
        "with this process",
    )
    return error

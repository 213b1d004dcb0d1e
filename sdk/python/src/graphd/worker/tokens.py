"""Tokens of LangChain's chat models as events, where LangChain is installed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from graphd import messages
from graphd.constants import TAG_NOSTREAM
from graphd.runtime.task import CurrentTask

_NOTHING = contextlib.nullcontext()


def stream_tokens(task: CurrentTask, tokens: bool) -> contextlib.AbstractContextManager[None]:
    """Makes models that are called without a config use that of the node, and
    emit their tokens. It makes them stream, so it is only done if asked for."""
    # Who calls a model of LangChain has imported it.
    found = _handler_class() if "langchain_core.language_models" in sys.modules else None
    return _NOTHING if found is None else _stream_with_handler(task, tokens, *found)


@contextlib.contextmanager
def _stream_with_handler(task: CurrentTask, tokens: bool, handler_class: type, variable: Any) -> Iterator[None]:
    # A task that a node calls has a handler of its own in place of that of the node.
    given = [c for c in _list_callbacks(task.config.get("callbacks")) if not isinstance(c, handler_class)]
    callbacks = [*given, *([handler_class(task)] if tokens else [])]
    token = variable.set(task.config | {"callbacks": callbacks})
    task.config["callbacks"] = callbacks
    try:
        yield
    finally:
        variable.reset(token)


def _list_callbacks(given: Any) -> list[Any]:
    return list(getattr(given, "handlers", given) or [])


@functools.cache
def _handler_class() -> tuple[type, Any] | None:
    try:
        base = importlib.import_module("langchain_core.callbacks").BaseCallbackHandler
        streaming = importlib.import_module("langchain_core.tracers._streaming")._StreamingCallbackHandler
        variable = importlib.import_module("langchain_core.runnables.config").var_child_runnable_config
    except (ImportError, AttributeError):
        return None

    class TokenHandler(base, streaming):  # type: ignore[misc, valid-type]
        """Emits what a model says as it says it; a message that was not
        streamed is emitted once it is there."""

        run_inline = True

        def __init__(self, task: CurrentTask) -> None:
            self._task = task
            self._metadata: dict[Any, dict[str, Any] | None] = {}
            self._stream_with_handler: set[Any] = set()

        def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **more: Any) -> None:
            tags = more.get("tags") or []
            silent = TAG_NOSTREAM in tags
            self._metadata[run_id] = None if silent else {**(more.get("metadata") or {}), "tags": tags or None}

        def on_llm_new_token(self, token: str, *, chunk: Any = None, run_id: Any, **more: Any) -> None:
            if (message := getattr(chunk, "message", None)) is not None:
                self._stream_with_handler.add(run_id)
                self._emit_message(run_id, message)

        def on_llm_end(self, response: Any, *, run_id: Any, **more: Any) -> None:
            message = getattr(response.generations[0][0], "message", None) if response.generations else None
            if message is not None and run_id not in self._stream_with_handler:
                self._emit_message(run_id, message)
            self._metadata.pop(run_id, None)

        def on_llm_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
            self._metadata.pop(run_id, None)

        def tap_output_iter(self, run_id: Any, output: Any) -> Any:
            return output

        def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
            return output

        def _emit_message(self, run_id: Any, message: Any) -> None:
            metadata = self._metadata.get(run_id)
            if metadata is not None:
                if message.id is None:  # the node returns this very object
                    message.id = str(uuid.uuid4())
                kept = {k: v for k, v in metadata.items() if isinstance(v, (str, int, float, bool, list))}
                value = {"message": messages.to_dict(message), "metadata": kept}
                self._task.host.emit_event("messages", "", value, False)
                self._task.note_progress()

    return TokenHandler, variable


__all__ = ["stream_tokens"]

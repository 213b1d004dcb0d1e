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


def stream_tokens(task: CurrentTask, tokens: bool, manager: Any = None) -> contextlib.AbstractContextManager[None]:
    """Makes models and other Runnables that are called without a config use that of the node.

    They tell the manager of the caller's handlers, None where there is none, and emit
    their tokens. That makes models stream, so it is only done if asked for.
    """
    # Who calls a model of LangChain has imported it.
    found = _handler_class() if manager is not None or _has_models() else None
    return _NOTHING if found is None else _provide_callbacks(task, tokens, manager, *found)


@contextlib.contextmanager
def _provide_callbacks(
    task: CurrentTask, tokens: bool, manager: Any, handler_class: type, set_config: Any, variable: Any
) -> Iterator[None]:
    handlers = [handler_class(task)] if tokens and _has_models() else []
    # A task that a node calls has a handler of its own in place of that of the node.
    callbacks = _replace_handlers(task.config.get("callbacks") if manager is None else manager, handlers, handler_class)
    task.config["callbacks"] = callbacks
    before = variable.get()
    set_config(dict(task.config))  # LangSmith's context too
    try:
        yield
    finally:
        variable.set(before)


def _has_models() -> bool:
    return "langchain_core.language_models" in sys.modules


def _replace_handlers(given: Any, handlers: list[Any], handler_class: type) -> Any:
    """The callbacks with these handlers in place of those of the class; a manager stays one."""
    if not hasattr(given, "add_handler"):
        return [*(c for c in given or [] if not isinstance(c, handler_class)), *handlers]
    manager = given.copy()
    for known in [c for c in manager.handlers if isinstance(c, handler_class)]:
        manager.remove_handler(known)
    for handler in handlers:
        manager.add_handler(handler, inherit=True)
    return manager


@functools.cache
def _handler_class() -> tuple[type, Any, Any] | None:
    try:
        base = importlib.import_module("langchain_core.callbacks").BaseCallbackHandler
        streaming = importlib.import_module("langchain_core.tracers._streaming")._StreamingCallbackHandler
        configs = importlib.import_module("langchain_core.runnables.config")
        set_config, variable = configs._set_config_context, configs.var_child_runnable_config
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

    return TokenHandler, set_config, variable


__all__ = ["stream_tokens"]

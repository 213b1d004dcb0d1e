"""Tokens of LangChain's chat models as events, where LangChain is installed."""

from __future__ import annotations

import functools
import importlib
import sys
import uuid
from typing import Any

from graphd import messages
from graphd.constants import TAG_NOSTREAM
from graphd.runtime.task import CurrentTask


def provide_callbacks(task: CurrentTask, manager: Any, *, tokens: bool) -> None:
    """Makes models and other Runnables that are called without a config use that of the node.

    They tell the manager of the caller's handlers, None where there is none, and emit
    their tokens. That makes models stream, so it is only done if asked for. It holds for
    the rest of the calling context, which is the node's own.
    """
    # Who calls a model of LangChain has imported it.
    has_models = "langchain_core.language_models" in sys.modules
    found = _handler_class() if manager is not None or has_models else None
    if found is None:
        return
    handler_class, set_config = found
    handlers = [handler_class(task)] if tokens and has_models else []
    if manager is None:
        task.config["callbacks"] = handlers
    else:
        for handler in handlers:
            manager.add_handler(handler, inherit=True)
        task.config["callbacks"] = manager
    set_config(dict(task.config))


@functools.cache
def _handler_class() -> tuple[type, Any] | None:
    try:
        base = importlib.import_module("langchain_core.callbacks").BaseCallbackHandler
        streaming = importlib.import_module("langchain_core.tracers._streaming")._StreamingCallbackHandler
        set_config = importlib.import_module("langchain_core.runnables.config")._set_config_context
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

    return TokenHandler, set_config


__all__ = ["provide_callbacks"]

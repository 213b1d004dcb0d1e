"""Checks what a model calls tools with, and runs no tool."""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphd.messages import from_dict
from graphd.packages import require_module
from graphd.prebuilt.agent_model import read_key
from graphd.prebuilt.call_schemas import check_arguments, read_schema, validation_errors
from graphd.threads import run_in_thread
from graphd.warnings import LangGraphDeprecatedSinceV10

FormatError = Callable[[BaseException, Any, Any], str]
"""Makes a text for the model of an error, the call and the schema."""


class ValidationNode:
    """A node that answers each tool call of the last message with its arguments, or with what is wrong in them.

    The content of an answer is the JSON of the arguments as their schema reads them. For wrong arguments it is the
    text of ``format_error``, and ``additional_kwargs["is_error"]`` is true: a graph goes back to the model then.
    The calls are checked side by side, ``max_concurrency`` of the config at a time.
    """

    def __init__(
        self,
        schemas: Sequence[Any],
        *,
        format_error: FormatError | None = None,
        name: str = "validation",
        tags: list[str] | None = None,
    ) -> None:
        """Makes the node; warns that LangGraph has deprecated it.

        A schema is a model of pydantic, for calls of its name, or a tool or a function, for calls of that. Anything
        else is a ValueError. Without pydantic MissingPackageError is raised.
        """
        message = "ValidationNode is deprecated: ToolNode checks arguments too, see its handle_tool_errors"
        warnings.warn(LangGraphDeprecatedSinceV10(message), stacklevel=2)
        require_module("pydantic", "ValidationNode")
        self.name, self.tags = name, tags
        self.schemas_by_name: dict[str, Any] = dict(map(read_schema, schemas))
        self._format_error = format_error or _ask_to_correct

    def invoke(self, input: Any, config: Mapping[str, Any] | None = None) -> Any:
        """Checks the calls, in a graph or outside of one.

        Returns messages for a list of messages, otherwise an update of ``messages``. Raises ValueError where the last
        message is not one of a model, and KeyError for a call that has no schema.
        """
        calls = _read_calls(input)
        with ThreadPoolExecutor((config or {}).get("max_concurrency")) as pool:
            begun = [pool.submit(contextvars.copy_context().run, self._answer, call) for call in calls]
        answers = [one.result() for one in begun]
        return answers if isinstance(input, list) else {"messages": answers}

    async def ainvoke(self, input: Any, config: Mapping[str, Any] | None = None) -> Any:
        """Like invoke; the loop goes on meanwhile."""
        return await run_in_thread(self.invoke, input, config)

    def _answer(self, call: Mapping[str, Any]) -> Any:
        if call["name"] not in self.schemas_by_name:
            raise KeyError(f"{call['name']}: no schema is for calls of it; there are {', '.join(self.schemas_by_name)}")
        schema = self.schemas_by_name[call["name"]]
        answer = {"type": "tool", "name": call["name"], "tool_call_id": call["id"]}
        try:
            return from_dict({**answer, "content": check_arguments(schema, call["args"])})
        except validation_errors() as error:
            content = self._format_error(error, call, schema)
            return from_dict({**answer, "content": content, "additional_kwargs": {"is_error": True}})


def _read_calls(input: Any) -> list[Mapping[str, Any]]:
    messages = input if isinstance(input, list) else read_key(input, "messages")
    if not messages:
        raise ValueError("there is no message whose tool calls could be checked")
    if messages[-1].type not in ("ai", "AIMessageChunk"):
        raise ValueError(f"the last message is not one of a model; its type is {messages[-1].type!r}")
    return list(messages[-1].tool_calls or [])


def _ask_to_correct(error: BaseException, call: Any, schema: Any) -> str:
    return f"{error!r}\n\nCorrect the arguments, and call the tool again."


__all__ = ["ValidationNode"]

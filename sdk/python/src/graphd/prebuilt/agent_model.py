"""Calls the model of an agent: LangChain's, or any object with the same methods."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphd.messages import from_dict, is_message, to_objects
from graphd.prebuilt.history import validate_chat_history
from graphd.prebuilt.tool import Tool
from graphd.runtime.info import Runtime
from graphd.threads import run_in_thread


class AgentModel:
    """A model with its tools and its prompt.

    ``given`` is the name of a model as "provider:name", an object with ``invoke(messages, config)`` or ``ainvoke``,
    or a function of the state and the runtime, plain or async, that returns such an object.
    """

    def __init__(self, given: Any, tools: Sequence[Any], prompt: Any) -> None:
        self._choose: Callable[[Any, Runtime[Any]], Any] | None = None
        self._prompt = _check_prompt(prompt)
        if isinstance(given, str):
            given = _init_model(given)
        if hasattr(given, "invoke") or hasattr(given, "ainvoke"):
            self._model = _bind_tools(given, tools)
        elif callable(given):
            self._choose = given
        else:
            raise TypeError(f"model: {given!r} is no model; want one with invoke(), a name, or a function that chooses")

    async def answer(self, state: Any, runtime: Runtime[Any], config: Any) -> Any:
        """What the model says to the messages of a state, with its prompt before them."""
        model = await self._choose_model(state, runtime)
        answer = await _invoke(model, await self._apply_prompt(state, config), config)
        if not is_message(answer):
            raise TypeError(f"model: it answered {answer!r:.200}; want a message")
        return answer

    async def structure(self, messages: list[Any], form: Any, state: Any, runtime: Runtime[Any], config: Any) -> Any:
        """What the model says to messages in the form of a schema, or of a pair of a prompt and a schema."""
        if isinstance(form, tuple):
            text, form = form
            messages = [from_dict({"type": "system", "content": text}), *messages]
        model = _inner_model(await self._choose_model(state, runtime))
        return await _invoke(model.with_structured_output(form), messages, config)

    async def _choose_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        return self._model if self._choose is None else await _call(self._choose, state, runtime)

    async def _apply_prompt(self, state: Any, config: Any) -> Any:
        if self._prompt is None:
            return read_key(state, "messages")
        if is_message(self._prompt):
            return [self._prompt, *read_key(state, "messages")]
        if hasattr(self._prompt, "invoke"):
            return await _invoke(self._prompt, state, config)
        return await _call(self._prompt, state)


def read_key(state: Any, key: str) -> Any:
    """A key of a state, which may be a dict or an object; None when it is not set."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def build_model_input(state: Any, *, hooked: bool) -> Any:
    """The state with the messages for the model: those of a hook before it, where there are any."""
    messages = (read_key(state, "llm_input_messages") if hooked else None) or read_key(state, "messages")
    if messages is None:
        wanted = "llm_input_messages or messages" if hooked else "messages"
        raise ValueError(f"the state of an agent has no messages for its model; want {wanted}, got {state!r:.200}")
    messages = to_objects(messages)
    validate_chat_history(messages)
    if isinstance(state, Mapping):
        return {**state, "messages": messages}
    if hasattr(state, "model_copy"):
        return state.model_copy(update={"messages": messages})
    return dataclasses.replace(state, messages=messages)


def _check_prompt(prompt: Any) -> Any:
    if isinstance(prompt, str):
        return from_dict({"type": "system", "content": prompt})
    if prompt is None or is_message(prompt) or hasattr(prompt, "invoke") or callable(prompt):
        return prompt
    raise ValueError(
        f"prompt: {prompt!r} is none; want a text, a system message, a runnable or a function of the state"
    )


def _init_model(name: str) -> Any:
    try:
        library = importlib.import_module("langchain.chat_models")
    except ImportError as missing:
        raise ImportError(f"model: the name {name!r} needs LangChain: pip install langchain") from missing
    return library.init_chat_model(name)


def _bind_tools(model: Any, tools: Sequence[Any]) -> Any:
    """The model with the tools, unless it has them already."""
    if not tools:
        return model
    bound = getattr(_find_step(model), "kwargs", {}).get("tools")
    if bound is None:
        return model.bind_tools([_bindable(tool) for tool in tools])
    if len(bound) != len(tools):
        raise ValueError(f"model: it has {len(bound)} tools bound, and the agent has {len(tools)}; want the same")
    known = {_bound_name(tool) for tool in bound}
    missing = [tool.name for tool in tools if isinstance(tool, Tool) and tool.name not in known]
    if missing:
        raise ValueError(f"model: the tools {', '.join(missing)} of the agent are not bound to it")
    return model


def _find_step(model: Any) -> Any:
    """The step of a sequence that is the model, with or without what is bound to it."""
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list):
        return model
    return next((s for s in steps if hasattr(s, "bound") or hasattr(s, "bind_tools")), model)


def _inner_model(model: Any) -> Any:
    """The model itself, without its tools."""
    step = _find_step(model)
    return getattr(step, "bound", step)


def _bound_name(tool: Mapping[str, Any]) -> str | None:
    name = tool["function"]["name"] if tool.get("type") == "function" else tool.get("name")
    return None if name is None else str(name)


def _bindable(tool: Any) -> Any:
    """A tool as a model takes it: LangChain's, the description that was given, or the function."""
    if not isinstance(tool, Tool):
        return tool
    if not inspect.isroutine(tool.source):
        return tool.source
    try:
        library = importlib.import_module("langchain_core.tools")
    except ImportError:
        return tool.source
    return library.tool(tool.source)


async def _invoke(runnable: Any, given: Any, config: Any) -> Any:
    if hasattr(runnable, "ainvoke"):
        return await runnable.ainvoke(given, config)
    return await run_in_thread(runnable.invoke, given, config)


async def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of the program; a plain one must not hold up the loop."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await run_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


__all__ = ["AgentModel", "build_model_input", "read_key"]

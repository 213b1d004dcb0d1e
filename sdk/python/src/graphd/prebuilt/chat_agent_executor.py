"""An agent: a model that calls tools until it has an answer."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

from graphd.graph.message import MessagesState
from graphd.graph.state import CompiledStateGraph, StateGraph
from graphd.managed import RemainingSteps
from graphd.messages import add_messages
from graphd.prebuilt.agent_graph import AgentGraph
from graphd.prebuilt.agent_model import AgentModel
from graphd.prebuilt.tool_node import ToolNode
from graphd.security import Security


class AgentState(MessagesState, total=False):
    """The state of an agent."""

    remaining_steps: RemainingSteps


class AgentStateWithStructuredResponse(AgentState, total=False):
    """The state of an agent that ends with an answer in the form of a schema."""

    structured_response: Any


def __getattr__(name: str) -> Any:
    """The states that are pydantic models, where pydantic is installed."""
    if name not in ("AgentStatePydantic", "AgentStateWithStructuredResponsePydantic"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _build_pydantic_state(name)


@functools.cache
def _build_pydantic_state(name: str) -> Any:
    fields: dict[str, Any] = {
        "messages": (Annotated[list[Any], add_messages], ...),
        "remaining_steps": (RemainingSteps, 25),
    }
    if name == "AgentStateWithStructuredResponsePydantic":
        fields["structured_response"] = (Any, ...)
    return importlib.import_module("pydantic").create_model(name, __module__=__name__, **fields)


def create_react_agent(
    model: Any,
    tools: Sequence[Any] | ToolNode,
    *,
    prompt: Any = None,
    response_format: Any = None,
    pre_model_hook: Any = None,
    post_model_hook: Any = None,
    state_schema: Any = None,
    context_schema: Any = None,
    checkpointer: Any = None,
    store: Any = None,
    interrupt_before: list[str] | None = None,
    interrupt_after: list[str] | None = None,
    debug: bool = False,
    version: Literal["v1", "v2"] = "v2",
    name: str | None = None,
    server: str | None = None,
    security: Security | None = None,
    worker: bool = True,
    config_schema: Any = None,
) -> CompiledStateGraph:
    """Makes a graph that asks a model, runs the tools that it calls, and asks it again until it calls none.

    ``model`` is a chat model of LangChain, an object with its ``invoke(messages, config)``, ``bind_tools`` and
    ``with_structured_output``, a name like "openai:gpt-5" for LangChain's ``init_chat_model``, or a function of the
    state and the runtime, plain or async, that returns a model with its tools. ``tools`` are functions, tools of
    LangChain, ``add_human_in_the_loop(…)``, descriptions of a provider's own tools as dicts, or a ToolNode.

    ``prompt`` goes before the messages: a text, a system message, or a function of the state or a runnable that
    returns what the model gets. ``response_format`` is a schema, or a pair of a prompt and a schema: the state gets
    ``structured_response`` at the end. ``pre_model_hook`` and ``post_model_hook`` are nodes around the model; the
    first may return ``llm_input_messages``, which the model gets in place of ``messages``.

    In ``version`` "v2" each tool call is a task of its own, in "v1" all calls of a message are one. ``state_schema``
    has ``messages`` and ``remaining_steps``, and ``structured_response`` with a response_format. The rest is that of
    ``StateGraph`` and its ``compile``. ValueError, TypeError and InvalidGraphError name a wrong argument.
    """
    if version not in ("v1", "v2"):
        raise ValueError(f'version: {version!r} is none; want "v1" or "v2"')
    state = _choose_state(state_schema, response_format)
    node = tools if isinstance(tools, ToolNode) else ToolNode([t for t in tools if not isinstance(t, dict)])
    provided = [] if isinstance(tools, ToolNode) else [t for t in tools if isinstance(t, dict)]
    agent = AgentGraph(
        model=AgentModel(model, [*node.tools_by_name.values(), *provided], prompt),
        tools=node,
        state=state,
        before=pre_model_hook,
        after=post_model_hook,
        form=response_format,
        sends_calls=version == "v2",
        name=name,
    )
    builder = agent.build(StateGraph(state, context_schema or config_schema))
    return builder.compile(
        checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        name=name,
        server=server,
        security=security,
        worker=worker,
    )


create_tool_calling_executor = create_react_agent


def _choose_state(given: Any, form: Any) -> Any:
    """The state that is given, when it has what an agent needs, or that of an agent."""
    if given is None:
        return AgentState if form is None else _structured_state(AgentStateWithStructuredResponse, form)
    needed = {"messages", "remaining_steps"} | ({"structured_response"} if form is not None else set())
    keys = get_type_hints(given)
    if missing := sorted(needed - keys.keys()):
        raise ValueError(f"state_schema: {given.__name__} lacks {', '.join(missing)}")
    return _structured_state(given, form) if keys.get("structured_response") is Any else given


def _structured_state(state: Any, form: Any) -> Any:
    """The state whose response is read as the class that describes it; a schema that is a dict describes a dict."""
    form = form[1] if isinstance(form, tuple) else form
    if not isinstance(form, type) or dataclasses.is_dataclass(state):
        return state
    if hasattr(state, "model_validate"):
        field = state.model_fields["structured_response"]
        kind = (form, ...) if field.is_required() else (form | None, field)
        create = importlib.import_module("pydantic").create_model
        return create(state.__name__, __base__=state, __module__=__name__, structured_response=kind)
    keys = get_type_hints(state, include_extras=True)
    return TypedDict(state.__name__, {**keys, "structured_response": form}, total=False)  # type: ignore[operator]


__all__ = [
    "AgentState",
    "AgentStateWithStructuredResponse",
    "create_react_agent",
    "create_tool_calling_executor",
]

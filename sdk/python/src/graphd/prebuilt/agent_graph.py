"""The nodes of an agent, and how they are joined."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, get_type_hints

from graphd.constants import END, START
from graphd.declare.schema import Schema, read_schema
from graphd.graph.state import StateGraph
from graphd.messages import from_dict
from graphd.prebuilt.agent_model import AgentModel, build_model_input, read_key
from graphd.prebuilt.agent_routes import AFTER, AGENT, BEFORE, STRUCTURE, TOOLS, AgentRoutes
from graphd.prebuilt.tool_node import ToolNode
from graphd.runtime.info import Runtime

_OUT_OF_STEPS = "Sorry, need more steps to process this request."  # programs for LangGraph look for it


@dataclass(frozen=True)
class AgentGraph:
    """What an agent is made of."""

    model: AgentModel
    tools: ToolNode
    state: Any
    before: Any
    """The node before the model, or None."""
    after: Any
    """The node after it, or None."""
    form: Any
    """The schema of the answer, or a pair of a prompt and a schema, or None."""
    sends_calls: bool
    name: str | None

    def build(self, builder: StateGraph) -> StateGraph:
        """Adds the nodes and edges to an empty graph."""
        routes = self._routes
        builder.add_node(AGENT, self._call_model, input_schema=self._model_input_schema)
        if self.before is not None:
            builder.add_node(BEFORE, self.before)
            builder.add_edge(BEFORE, AGENT)
        if self.after is not None:
            builder.add_node(AFTER, self.after)
            builder.add_edge(AGENT, AFTER)
        if self.form is not None:
            builder.add_node(STRUCTURE, self._structure_answer)
            builder.add_edge(STRUCTURE, END)
        builder.add_edge(START, routes.entry)
        last = AGENT if self.after is None else AFTER
        if not self.tools.tools_by_name:
            return builder.add_edge(last, routes.end)
        builder.add_node(TOOLS, self._run_tools)
        if self.after is None:
            builder.add_conditional_edges(AGENT, routes.after_model, [TOOLS, routes.end])
        else:
            builder.add_conditional_edges(AFTER, routes.after_hook, [routes.entry, TOOLS, routes.end])
        if not routes.direct:
            return builder.add_edge(TOOLS, routes.entry)
        return builder.add_conditional_edges(TOOLS, routes.after_tools, [routes.entry, END])

    @functools.cached_property
    def _routes(self) -> AgentRoutes:
        listed = self.tools.tools_by_name.values()
        return AgentRoutes(
            entry=AGENT if self.before is None else BEFORE,
            is_structured=self.form is not None,
            sends_calls=self.sends_calls,
            sends_state=any(tool.is_filled for tool in listed),
            direct={tool.name for tool in listed if tool.return_direct},
        )

    @property
    def _model_input_schema(self) -> Any:
        """The state, and the messages that a hook has made for the model alone."""
        if self.before is None:
            return self.state
        key = "llm_input_messages"
        if hasattr(self.state, "model_validate"):
            fields = {"__annotations__": {key: list[Any] | None}, key: None, "__module__": __name__}
            return type("ModelInput", (self.state,), fields)
        keys = get_type_hints(self.state, include_extras=True)
        return TypedDict("ModelInput", {**keys, key: list[Any]}, total=False)  # type: ignore[operator]

    @functools.cached_property
    def _schema(self) -> Schema:
        return read_schema(self.state)

    async def _call_model(self, state: Any, runtime: Runtime[Any], config: Any) -> dict[str, Any]:
        given = build_model_input(state, hooked=self.before is not None)
        answer = await self.model.answer(given, runtime, config)
        answer.name = self.name
        if self._needs_more_steps(state, answer):
            answer = from_dict({"type": "ai", "content": _OUT_OF_STEPS, "id": answer.id})
        return {"messages": [answer]}

    def _needs_more_steps(self, state: Any, answer: Any) -> bool:
        """The model calls tools, and the run may not take a superstep for them and one for what follows."""
        left = read_key(state, "remaining_steps")
        return bool(read_key(answer, "tool_calls")) and left is not None and left < 2

    async def _structure_answer(self, state: Any, runtime: Runtime[Any], config: Any) -> dict[str, Any]:
        messages = list(read_key(state, "messages"))
        return {"structured_response": await self.model.structure(messages, self.form, state, runtime, config)}

    async def _run_tools(self, given: Any, config: Any) -> Any:
        if isinstance(given, Mapping) and "__type" in given:
            given = {**given, "state": self._schema.build_value(given["state"])}
        return await self.tools.ainvoke(given, config)


__all__ = ["AgentGraph"]

"""Tools of LangChain; their annotations must not be strings."""

from typing import Annotated, Any

import pytest

from graphd import Command, interrupt
from graphd.dev import DevServer
from graphd.messages import ToolMessage
from graphd.prebuilt import InjectedState
from tests.test_tools import graph, run

lc = pytest.importorskip("langchain_core.tools")


def test_tools_of_langchain(server: DevServer) -> None:
    def name_it(name: str, tool_call_id: Annotated[str, lc.InjectedToolCallId]) -> Any:
        """Names the user."""
        messages = [ToolMessage("named", tool_call_id=tool_call_id)]
        return Command(update={"user": name, "messages": messages})

    async def slow(x: int) -> str:
        """Is slow."""
        return f"slow {x}"

    def asks(x: int, user: Annotated[str, InjectedState("user")]) -> str:
        """Asks."""
        return f"{user}: {x} {interrupt('sure?')}"

    tools = [lc.tool(name_it), lc.tool(slow), lc.tool(asks)]
    assert list(tools[2].tool_call_schema.model_json_schema()["properties"]) == ["x"]

    calls: list[tuple[str, dict[str, Any]]] = [("slow", {"x": 1}), ("slow", {"x": "one"}), ("asks", {"x": 2})]
    compiled = graph(server, "langchain", tools, calls)
    compiled.invoke({"messages": ["go"], "user": "ann"}, {"configurable": {"thread_id": "langchain"}})
    first, second, third = run(compiled, Command(resume="yes"))
    assert (first, third) == (("slow 1", "success"), ("ann: 2 yes", "success"))
    assert (second[1], "x: Input should be a valid integer" in second[0]) == ("error", True)

    compiled = graph(server, "commands", tools, [("name_it", {"name": "bob"})])
    assert run(compiled) == [("named", "success")]
    assert compiled.get_state({"configurable": {"thread_id": "commands"}}).values["user"] == "bob"

"""Examples of docs/python.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graphd import START, MessagesState, StateGraph
from graphd.messages import AIMessage
from graphd.remote import Client
from graphd.testing import AnswerPolicy, IsolatedServer
from tests.test_testing import builder_of_program

pytest_plugins = ["graphd.testing.plugin"]

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()
GRAPH = (ROOT / "examples" / "refund-review" / "graph.yaml").read_text()


def read_example(section: str, number: int = 0) -> str:
    """The first Python code of a section, or a later one."""
    text = PAGE.partition(f"# {section}\n")[2]
    return str(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number])


def test_the_example_of_a_client(graphd_client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    graphd_client.graphs.put(GRAPH)
    exec(read_example("Clients without a graph"), {})
    shown = capsys.readouterr().out.splitlines()
    assert "Your refund has been approved. The money is on its way." in shown
    assert shown[-1] == "interrupted"
    assert graphd_client.runs.wait("ticket-1").metadata == {"team": "eu"}


def test_the_example_of_a_test(graphd_server: IsolatedServer, graphd_answers: AnswerPolicy) -> None:
    names: dict[str, Any] = {"builder": builder_of_program("review", "amount")}
    exec(read_example("Test a program"), names)
    names["test_refund"](graphd_server, graphd_answers)


def test_the_example_of_tool_calls(graphd_server: IsolatedServer, graphd_answers: AnswerPolicy) -> None:
    names: dict[str, Any] = {}
    for number in (0, 1):
        exec(read_example("Approve tool calls", number), names)
    plain = StateGraph(MessagesState).add_node("tools", names["call_tools"]).add_edge(START, "tools")
    decisions = {"c1": {"type": "reject"}, "c2": {"type": "edit", "args": {"customer": "bob", "amount": 5}}}
    graphd_answers.on(reason="tool_call", answer=lambda question: decisions[question.value["tool_call_id"]])
    calls = [{"name": "pay", "args": {"customer": "ann", "amount": 10}, "id": id} for id in decisions]
    calls.append({"name": "find", "args": {"customer": "ann"}, "id": "c3"})
    for name, builder in (("of-tools", names["builder"]), ("of-functions", plain)):
        given = {"messages": [AIMessage("", id="asks", tool_calls=calls)]}
        ended = graphd_answers.invoke(builder.compile(name=name), given, {"configurable": {"thread_id": name}})
        rejected, changed, found = (message.content for message in ended["messages"][1:])
        assert "has rejected this call of pay" in rejected and changed.endswith("paid 5 to bob")
        assert found == "ann is a customer"

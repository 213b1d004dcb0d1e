"""Agents of create_react_agent, and tools outside of a graph."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd import START, Command, InMemorySaver, MessagesState, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.messages import from_dict
from graphd.prebuilt import ToolNode, add_human_in_the_loop, create_react_agent, tools_condition

PROGRAM = Path(__file__).with_name("agent_program.py").read_text()


def ported(server: str) -> str:
    """The program for graphd; only these lines are touched."""
    text, imports = re.subn(r"^from langgraph\b", "from graphd", PROGRAM, flags=re.MULTILINE)
    text, savers = re.subn(r"InMemorySaver\(\)", f'InMemorySaver(server="{server}")', text)
    assert (imports, savers) == (5, 3)
    return text


def run(program: str, name: str) -> Any:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(program, name, "exec", dont_inherit=True), names)
    return json.loads(json.dumps(names["out"]))


def test_agents_do_the_same_as_on_langgraph(server: DevServer) -> None:
    pytest.importorskip("langgraph.prebuilt")
    pytest.importorskip("langchain_core")
    told, expected = run(ported(server.address), "ported"), run(PROGRAM, "original")
    for here, there in zip(told, expected, strict=True):
        assert here == there


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def slow(a: int) -> str:
    """Is slow."""
    await asyncio.sleep(0)
    return f"slow {a}"


def ask(what: str) -> str:
    """Asks a person."""
    return f"{what}: {interrupt(what)}"


def call(name: str, at: int = 0, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"c{at}", "type": "tool_call"}


CALLS = [call("add", 0, a=1, b=2), call("slow", 1, a=3), call("nope", 2)]
ANSWERS = [
    ("3", "success"),
    ("slow 3", "success"),
    ("Error: nope is not a valid tool, try one of [add, slow].", "error"),
]


def test_tools_run_outside_of_a_graph() -> None:
    node = ToolNode([add, slow])
    message = from_dict({"type": "ai", "content": "", "tool_calls": CALLS})
    for given, as_list in (({"messages": [message]}, False), ([message], True), (CALLS, False)):
        answered = node.invoke(given)
        listed = answered if as_list else answered["messages"]
        assert [(m.content, m.status) for m in listed] == ANSWERS
    assert ToolNode([add], messages_key="chat").invoke({"chat": [message]})["chat"][0].content == "3"
    with pytest.raises(ValueError, match="there is no AI message"):
        node.invoke({"messages": []})
    with pytest.raises(RuntimeError, match="works only inside of a node"):
        ToolNode([ask], handle_tool_errors=False).invoke([call("ask", what="x")])


async def test_tools_run_on_a_running_loop() -> None:
    node = ToolNode([add, slow])
    assert [m.content for m in (await node.ainvoke(CALLS[:2]))["messages"]] == ["3", "slow 3"]
    assert [m.content for m in node.invoke(CALLS[:2])["messages"]] == ["3", "slow 3"]


def test_tools_outside_of_a_graph_answer_as_those_of_langgraph() -> None:
    theirs = pytest.importorskip("langgraph.prebuilt")
    runtime = pytest.importorskip("langgraph.runtime").Runtime()
    config: Any = {"configurable": {"__pregel_runtime": runtime}}
    message = from_dict({"type": "ai", "content": "", "tool_calls": [CALLS[0], CALLS[2]]})
    for given in ({"messages": [message]}, [message], [CALLS[0], CALLS[2]]):
        assert ToolNode([add]).invoke(given) == theirs.ToolNode([add]).invoke(given, config)


def test_an_empty_chat_has_no_condition() -> None:
    for empty in ([], {"messages": []}, {}):
        with pytest.raises(ValueError, match="there is no message under 'messages'"):
            tools_condition(empty)


class PlainModel:
    """A model without LangChain: it calls the tools of a script, then repeats what they said."""

    def __init__(self, *script: dict[str, Any]) -> None:
        self.script = list(script)
        self.tools: list[Any] = []

    def bind_tools(self, tools: list[Any]) -> PlainModel:
        self.tools = tools
        return self

    def invoke(self, messages: list[Any], config: Any = None) -> Any:
        answers = [m.content for m in messages if m.type == "tool"]
        if not answers and self.script:
            return from_dict({"type": "ai", "content": "", "id": "asks", "tool_calls": self.script})
        return from_dict({"type": "ai", "content": " / ".join(answers), "id": "says"})


def test_each_call_of_an_agent_asks_its_own_question(server: DevServer) -> None:
    model = PlainModel(call("ask", 0, what="first"), call("ask", 1, what="second"), call("add", 2, a=1, b=2))
    agent = create_react_agent(model, [ask, add], server=server.address, name="asking-agent")
    config: Any = {"configurable": {"thread_id": "asking-agent"}}
    asked = agent.invoke({"messages": ["go"]}, config)["__interrupt__"]
    assert [i.value for i in asked] == ["first", "second"]
    state = agent.invoke(Command(resume={asked[1].id: "B"}), config)
    assert [i.value for i in state["__interrupt__"]] == ["first"]
    ended = agent.invoke(Command(resume="A"), config)
    assert ended["messages"][-1].content == "first: A / second: B / 3"


def test_calls_travel_with_the_state_only_for_tools_that_want_it(server: DevServer) -> None:
    sent = []
    for tool in (add, ToolNode([add])):
        tools = tool if isinstance(tool, ToolNode) else [tool]
        agent = create_react_agent(
            PlainModel(call("add", a=1, b=2)), tools, checkpointer=InMemorySaver(server=server.address)
        )
        config: Any = {"configurable": {"thread_id": f"sent-{len(sent)}"}}
        modes = agent.stream({"messages": ["go"]}, config, stream_mode="tasks")
        sent.append([item["input"] for item in modes if item["name"] == "tools" and "input" in item])
    assert sent == [[[call("add", a=1, b=2)]]] * 2


async def test_async_agents(server: DevServer) -> None:
    agent = create_react_agent(PlainModel(call("slow", a=1)), [slow], server=server.address, name="async-agent")
    ended = await agent.ainvoke({"messages": ["go"]}, {"configurable": {"thread_id": "async-agent"}})
    assert ended["messages"][-1].content == "slow 1"


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"model": 7}, TypeError, "model: 7 is no model; want"),
        ({"version": "v3"}, ValueError, 'version: \'v3\' is none; want "v1" or "v2"'),
        ({"prompt": 7}, ValueError, "prompt: 7 is none; want"),
        (
            {"state_schema": type("Empty", (), {"__annotations__": {"x": int}})},
            ValueError,
            "state_schema: Empty lacks messages, remaining_steps",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        create_react_agent(**{"model": PlainModel(), "tools": [add], **arguments})


def test_agents_need_no_langchain(server: DevServer) -> None:
    program = f"""
import sys
for name in ("langchain_core", "langchain", "langgraph", "pydantic"):
    sys.modules[name] = None
from graphd.prebuilt import create_react_agent
from graphd.messages import AIMessage

def add(a: int, b: int) -> int:
    return a + b

class Model:
    def bind_tools(self, tools):
        return self
    async def ainvoke(self, messages, config=None):
        if messages[-1].type == "tool":
            return AIMessage(f"{{messages[0].content}} {{messages[-1].content}}", id="2")
        return AIMessage("", id="1", tool_calls=[{{"name": "add", "args": {{"a": 1, "b": 2}}, "id": "c", "type": "tool_call"}}])

agent = create_react_agent(Model(), [add], prompt="sum", server="{server.address}", name="alone")
print(agent.invoke({{"messages": ["go"]}}, {{"configurable": {{"thread_id": "alone"}}}})["messages"][-1].content)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("sum 3\n", 0), done.stderr


def test_a_person_reviews_a_tool_that_langchain_describes(server: DevServer) -> None:
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    bound: list[Any] = []

    class Model(models.GenericFakeChatModel):  # type: ignore[misc, name-defined]
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            bound.extend(tools)
            return self

    said = [
        {"type": "ai", "content": "", "tool_calls": [call("add", a=1, b=2)]},
        {"type": "ai", "content": "it is done"},
    ]
    agent = create_react_agent(
        Model(messages=map(from_dict, said)), [add_human_in_the_loop(add)], server=server.address, name="reviewed-agent"
    )
    assert [(t.name, t.description, list(t.args)) for t in bound] == [("add", "Adds.", ["a", "b"])]
    config: Any = {"configurable": {"thread_id": "reviewed-agent"}}
    asked = agent.invoke({"messages": ["go"]}, config)["__interrupt__"]
    assert asked[0].value["action_request"] == {"action": "add", "args": {"a": 1, "b": 2}}
    edit = Command(resume={"type": "edit", "args": {"args": {"a": 5, "b": 2}}})
    tokens = [piece.content for piece, _ in agent.stream(edit, config, stream_mode="messages")]
    assert tokens[0] == "7" and "".join(tokens[1:]) == "it is done" and len(tokens) > 3


def test_an_agent_is_a_node_of_another_graph(server: DevServer) -> None:
    agent = create_react_agent(PlainModel(call("ask", what="sure?")), [ask], name="inner-agent")
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    graph = builder.compile(server=server.address, name="outer-of-agent")
    config: Any = {"configurable": {"thread_id": "outer-of-agent"}}
    assert [i.value for i in graph.invoke({"messages": ["go"]}, config)["__interrupt__"]] == ["sure?"]
    assert graph.invoke(Command(resume="yes"), config)["messages"][-1].content == "sure?: yes"

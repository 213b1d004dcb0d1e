"""Functions around the calls of a ToolNode, here and on LangGraph."""

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from graphd import START, Command, InMemorySaver, MessagesState, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.messages import from_dict
from graphd.prebuilt import InjectedState, ToolNode

failures: list[int] = []


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def flaky(a: int) -> int:
    """Fails at first."""
    failures.append(a)
    if len(failures) < 3:
        raise ConnectionError("flaky")
    return a


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": name, "type": "tool_call"}


def double(request: Any, execute: Any) -> Any:
    return execute(request.override(tool_call={**request.tool_call, "args": {"a": 2, "b": 2}}))


def repeat(request: Any, execute: Any) -> Any:
    while (message := execute(request)).status == "error":
        pass
    return message


def take_place(request: Any, execute: Any) -> Any:
    if request.tool is None:
        return from_dict({"type": "tool", "content": "in place", "tool_call_id": request.tool_call["id"]})
    return execute(request)


def pass_through(request: Any, execute: Any) -> Any:
    return execute(request)


def fail(request: Any, execute: Any) -> Any:
    raise ValueError("around")


WRAPPERS: list[tuple[Any, dict[str, Any], str]] = [
    (double, call("add", a=1, b=1), "4"),
    (repeat, call("flaky", a=7), "7"),
    (take_place, call("unknown"), "in place"),
    (pass_through, call("unknown"), "Error: unknown is not a valid tool, try one of [add, flaky]."),
    (fail, call("add", a=1, b=1), "Error: ValueError('around')\n Please fix your mistakes."),
]


@pytest.mark.parametrize(("wrap", "made", "content"), WRAPPERS, ids=[w[0].__name__ for w in WRAPPERS])
def test_a_function_around_calls(wrap: Any, made: Any, content: str) -> None:
    failures.clear()
    here = ToolNode([add, flaky], wrap_tool_call=wrap, handle_tool_errors=True).invoke([made])
    assert here["messages"][0].content == content
    theirs = pytest.importorskip("langgraph.prebuilt")
    runtime = pytest.importorskip("langgraph.runtime").Runtime()
    failures.clear()
    node = theirs.ToolNode([add, flaky], wrap_tool_call=wrap, handle_tool_errors=True)
    assert here == node.invoke([made], {"configurable": {"__pregel_runtime": runtime}})


async def test_an_async_function_around_calls() -> None:
    async def wrap(request: Any, execute: Any) -> Any:
        first, _ = await asyncio.gather(execute(request), execute(request))
        return first

    failures.clear()
    node = ToolNode([add, flaky], awrap_tool_call=wrap, wrap_tool_call=fail, handle_tool_errors=True)
    assert [m.content for m in (await node.ainvoke([call("add", a=1, b=2)]))["messages"]] == ["3"]
    await node.ainvoke([call("flaky", a=1)])
    assert failures == [1, 1]


def test_another_tool_and_another_state() -> None:
    def subtract(a: int, b: int, user: Annotated[str, InjectedState("user")]) -> str:
        return f"{a - b} for {user}"

    def wrap(request: Any, execute: Any) -> Any:
        assert request.runtime.tool_call_id == "add" and request.runtime.state == request.state
        return execute(request.override(tool=subtract, state={"user": "ann"}))

    made = ToolNode([add], wrap_tool_call=wrap).invoke([call("add", a=5, b=2)])
    assert made["messages"][0].content == "3 for ann"
    with pytest.raises(TypeError, match="wrap_tool_call: it returned 7; want a tool message or a command"):
        ToolNode([add], wrap_tool_call=lambda request, execute: 7, handle_tool_errors=False).invoke(
            [call("add", a=1, b=1)]
        )


def test_a_function_around_calls_may_ask(server: DevServer) -> None:
    def review(request: Any, execute: Any) -> Any:
        if interrupt({"call": request.tool_call["name"]}) == "refuse":
            return from_dict({"type": "tool", "content": "refused", "tool_call_id": request.tool_call["id"]})
        return execute(request)

    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([add, flaky], wrap_tool_call=review))
    builder.add_edge(START, "tools")
    graph = builder.compile(InMemorySaver(server=server.address), name="wrapped-tools")
    calls = [call("add", a=1, b=2), call("flaky", a=1)]
    asking = from_dict({"type": "ai", "content": "", "id": "asks", "tool_calls": calls})
    config: Any = {"configurable": {"thread_id": "wrapped-tools"}}
    asked = graph.invoke({"messages": [asking]}, config)["__interrupt__"]
    assert [i.value for i in asked] == [{"call": "add"}, {"call": "flaky"}]
    ended = graph.invoke(Command(resume={asked[0].id: "go on", asked[1].id: "refuse"}), config)
    assert [m.content for m in ended["messages"][1:]] == ["3", "refused"]


def numbered(name: str, count: int) -> list[dict[str, Any]]:
    return [{**call(name, a=number), "id": f"{name}-{number}"} for number in range(count)]


def contents_of(run: Callable[[], Any]) -> list[str]:
    """What the tools answer. The test fails when they wait for one another."""
    answered: list[Any] = []
    thread = threading.Thread(target=lambda: answered.extend(run()["messages"]), daemon=True)
    thread.start()
    thread.join(90)
    return [message.content for message in answered]


def test_many_tools_wait_for_the_tools_of_others() -> None:
    together = threading.Barrier(40)

    def leaf(a: int) -> int:
        """Answers."""
        return a

    def delegate(a: int) -> str:
        """Lets another agent answer."""
        together.wait(60)
        return str(ToolNode([leaf]).invoke([call("leaf", a=a)])["messages"][0].content)

    node = ToolNode([delegate])
    assert contents_of(lambda: node.invoke(numbered("delegate", 40))) == [str(n) for n in range(40)]


def test_many_functions_around_calls_wait_for_one_another() -> None:
    together = threading.Barrier(40)

    def meet(request: Any, execute: Any) -> Any:
        together.wait(60)
        return execute(request)

    def leaf(a: int) -> int:
        """Answers."""
        return a

    node = ToolNode([leaf], wrap_tool_call=meet)
    assert contents_of(lambda: node.invoke(numbered("leaf", 40))) == [str(n) for n in range(40)]


def test_plain_tools_run_as_many_at_a_time_as_the_config_says(server: DevServer) -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def slow(a: int) -> int:
        """Takes its time."""
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.2)
        with lock:
            running[0] -= 1
        return a

    node = ToolNode([slow])
    node.invoke(numbered("slow", 5), {"max_concurrency": 2})
    assert most == [2]
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
    asking = from_dict({"type": "ai", "content": "", "id": "asks", "tool_calls": numbered("slow", 5)})
    compiled = graph.compile(InMemorySaver(server=server.address), name="limited-tools")
    config: Any = {"configurable": {"thread_id": "limited-tools"}, "max_concurrency": 3}
    most[0] = 0
    assert len(compiled.invoke({"messages": [asking]}, config)["messages"]) == 6
    assert most == [3]


def test_a_tool_that_stops_an_iteration_fails() -> None:
    def exhausted(a: int) -> Any:
        """Has nothing more."""
        return next(iter(()))

    node = ToolNode([exhausted], handle_tool_errors=True)
    assert contents_of(lambda: node.invoke([call("exhausted", a=1)])) == [
        "Error: RuntimeError('the function raised StopIteration')\n Please fix your mistakes."
    ]

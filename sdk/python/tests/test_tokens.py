"""Tokens reach the caller while the node runs."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import START, MessagesState, StateGraph, push_message
from graphd.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from graphd.types import Command, RetryPolicy


def thread(id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": id}}


def graph(server: DevServer, name: str, **options: Any) -> Any:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = fakes.GenericFakeChatModel(messages=iter(["hello dear world", "again"]))

    def talk(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"], **options)]}

    builder = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def test_tokens_come_one_by_one(server: DevServer) -> None:
    config = {"configurable": {"thread_id": "tokens-1"}, "metadata": {"user": "ann"}}
    items = list(graph(server, "tokens").stream({"messages": ["hi"]}, config, stream_mode="messages"))
    assert "".join(message.content for message, _ in items) == "hello dear world"
    assert len(items) > 1
    message, metadata = items[0]
    assert type(message).__name__ == "AIMessageChunk"
    assert (metadata["langgraph_node"], metadata["user"]) == ("talk", "ann")


def test_messages_have_the_metadata_of_their_node(server: DevServer) -> None:
    def talk(state: MessagesState) -> dict[str, Any]:
        push_message(AIMessage("pushed", id="pushed"), state_key=None)
        return {"messages": [AIMessage("returned", id="returned")]}

    builder = StateGraph(MessagesState).add_node("talk", talk, metadata={"role": "owl"}).add_edge(START, "talk")
    talking = builder.compile(InMemorySaver(server=server.address), name="node-metadata")
    items = list(talking.stream({"messages": []}, thread("node-metadata"), stream_mode="messages"))
    assert [(m.content, metadata["role"]) for m, metadata in items] == [("pushed", "owl"), ("returned", "owl")]


def test_silent_models_are_silent(server: DevServer) -> None:
    config = {"configurable": {"thread_id": "tokens-2"}}
    silent = graph(server, "silent", config={"tags": ["nostream"]})
    items = list(silent.stream({"messages": ["hi"]}, config, stream_mode="messages"))
    assert [m.content for m, _ in items] == ["hello dear world"]  # once, as the result of the node


def test_models_stream_only_for_those_who_watch(server: DevServer) -> None:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    asked: list[str] = []

    class Model(fakes.GenericFakeChatModel):  # type: ignore[misc, name-defined]
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            asked.append("stream")
            return super()._stream(*args, **kwargs)

    model = Model(messages=iter(["one two", "three four"]))
    builder = StateGraph(MessagesState).add_node("talk", lambda s: {"messages": [model.invoke(s["messages"])]})
    compiled = builder.add_edge(START, "talk").compile(InMemorySaver(server=server.address), name="watched")
    assert compiled.invoke({"messages": ["hi"]}, thread("watched-1"))["messages"][-1].content == "one two"
    assert asked == []
    items = list(compiled.stream({"messages": ["hi"]}, thread("watched-1"), stream_mode="messages"))
    assert (asked, "".join(m.content for m, _ in items)) == (["stream"], "three four")


def test_pushed_messages_are_shown_at_once_and_kept(server: DevServer) -> None:
    def talk(state: MessagesState) -> dict[str, Any]:
        for piece in ("hel", "lo"):
            push_message(AIMessageChunk(piece, id="m1"), state_key=None)
        push_message({"role": "assistant", "content": "by the way", "id": "m0"})
        return {"messages": [AIMessage("hello", id="m1")]}

    builder = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="pushed")
    items = list(compiled.stream({"messages": ["hi"]}, thread("pushed-1"), stream_mode="messages"))
    assert [(m.id, m.content) for m, _ in items] == [("m1", "hel"), ("m1", "lo"), ("m0", "by the way")]
    assert items[0][1]["langgraph_node"] == "talk"
    kept = compiled.get_state(thread("pushed-1")).values["messages"]
    assert [(m.id, m.content) for m in kept[1:]] == [("m0", "by the way"), ("m1", "hello")]
    with pytest.raises(RuntimeError, match="inside of a node"):
        push_message(AIMessage("x", id="x"))


def test_messages_without_ids_are_all_shown(server: DevServer) -> None:
    class Plain(TypedDict, total=False):
        said: list[BaseMessage]

    def talk(state: Plain) -> dict[str, Any]:
        return {"said": [AIMessage("one"), AIMessage("two"), ToolMessage("three", tool_call_id="c1")]}

    def again(state: Plain) -> dict[str, Any]:
        return {"said": [ToolMessage("four", tool_call_id="c2"), AIMessage("four")]}

    builder = StateGraph(Plain).add_sequence([("talk", talk), ("again", again)]).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="unnamed")
    shown = [message for message, _ in compiled.stream({"said": []}, thread("unnamed-1"), stream_mode="messages")]
    assert [m.content for m in shown] == ["one", "two", "three", "four", "four"]
    assert len({m.id for m in shown}) == len(shown)


def test_tokens_that_come_again_say_so(server: DevServer) -> None:
    tries: list[int] = []

    def talk(state: MessagesState) -> dict[str, Any]:
        tries.append(1)
        push_message(AIMessageChunk(content=f"try {len(tries)}", id=str(len(tries))), state_key=None)
        if len(tries) < 3:
            raise ValueError("not yet")
        return {"messages": [AIMessage(content="done", id="done")]}

    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    builder = StateGraph(MessagesState).add_node("talk", talk, retry_policy=policy).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="restarted")
    seen = list(compiled.stream({"messages": ["hi"]}, thread("restarted-1"), stream_mode=["messages", "debug"]))
    shown = [(m.content, about.get("graphd_restarts")) for mode, (m, about) in _of(seen, "messages")]
    assert shown == [("try 1", None), ("try 2", 1), ("try 3", 2), ("done", 2)]
    marks = [item["payload"] for _, item in _of(seen, "debug") if item["type"] == "task_restart"]
    assert [(mark["name"], mark["attempt"]) for mark in marks] == [("talk", 2), ("talk", 3)]


def _of(seen: list[Any], mode: str) -> list[Any]:
    return [item for item in seen if item[0] == mode]


class Chat(MessagesState):
    last: AIMessage
    extra: Annotated[list[BaseMessage], operator.add]


def test_messages_are_stored_under_the_ids_that_are_shown(server: DevServer) -> None:
    same = AIMessage("same")

    def talk(state: Chat) -> Any:
        return {"messages": [same, {"type": "ai", "content": "as a dict"}, ("ai", "a pair")], "last": same}

    def command(state: Chat) -> Any:
        return Command(update={"messages": AIMessage("of a command"), "extra": [AIMessage("extra")]})

    builder = StateGraph(Chat).add_sequence([("talk", talk), ("command", command)]).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="named-once")
    for number in ("1", "2"):
        config = thread(f"named-{number}")
        shown = [m for m, _ in compiled.stream({"messages": ["hi"]}, config, stream_mode="messages")]
        assert [m.content for m in shown] == ["same", "as a dict", "of a command", "extra"]
        state = compiled.get_state(config).values
        found = {m.content: m.id for m in [*state["messages"], *state["extra"]]}
        assert {m.content: m.id for m in shown} == {m.content: found[m.content] for m in shown}
        assert state["last"].id == found["same"]
    assert same.id is None, "the messages of the program stay as they are"


def test_messages_say_of_which_thread_they_are(server: DevServer) -> None:
    def talk(state: MessagesState) -> Any:
        push_message(AIMessage("pushed", id="p"), state_key=None)
        return {"messages": [AIMessage("returned")]}

    builder = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="which-thread")
    seen = list(compiled.stream({"messages": ["hi"]}, thread("which-1"), stream_mode="messages"))
    assert [(m.content, about["thread_id"]) for m, about in seen] == [("pushed", "which-1"), ("returned", "which-1")]


def test_a_model_that_does_not_stream_has_one_id(server: DevServer) -> None:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    core = pytest.importorskip("langchain_core.messages")
    model = fakes.FakeMessagesListChatModel(responses=[core.AIMessage("whole")])

    def talk(state: MessagesState) -> Any:
        return {"messages": [model.invoke("hi")]}

    builder = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk")
    compiled = builder.compile(InMemorySaver(server=server.address), name="whole")
    shown = [m for m, _ in compiled.stream({"messages": ["hi"]}, thread("whole-1"), stream_mode="messages")]
    assert [(m.content, m.id) for m in shown] == [
        ("whole", compiled.get_state(thread("whole-1")).values["messages"][-1].id)
    ]

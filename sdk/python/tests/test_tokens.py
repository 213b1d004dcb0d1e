"""Tokens of a LangChain model reach the caller while the node runs."""

from __future__ import annotations

from typing import Any

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import START, MessagesState, StateGraph

fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")


def graph(server: DevServer, name: str, **options: Any) -> Any:
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


def test_silent_models_are_silent(server: DevServer) -> None:
    config = {"configurable": {"thread_id": "tokens-2"}}
    silent = graph(server, "silent", config={"tags": ["nostream"]})
    items = list(silent.stream({"messages": ["hi"]}, config, stream_mode="messages"))
    assert [m.content for m, _ in items] == ["hello dear world"]  # once, as the result of the node

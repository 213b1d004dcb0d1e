"""The serializers of LangGraph: where graphd calls them, and where it refuses them."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from typing import Any

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.errors import IgnoredSerializer
from graphd.graph import START, MessagesState, StateGraph

jsonplus = pytest.importorskip("langgraph.checkpoint.serde.jsonplus")
encrypted = pytest.importorskip("langgraph.checkpoint.serde.encrypted")


class Rot:
    """A cipher for tests, which hides nothing."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "rot", bytes((byte + 1) % 256 for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "rot"
        return bytes((byte - 1) % 256 for byte in ciphertext)


class Own(jsonplus.JsonPlusSerializer):  # type: ignore[misc, name-defined]
    """May do anything with the bytes."""


def test_the_classes_are_those_of_langgraph() -> None:
    for module, name in ((jsonplus, "JsonPlusSerializer"), (encrypted, "EncryptedSerializer")):
        ours = importlib.import_module(module.__name__.replace("langgraph", "graphd", 1))
        assert getattr(ours, name) is getattr(module, name)


@pytest.mark.parametrize(
    "serde", [None, jsonplus.JsonPlusSerializer(), jsonplus.JsonPlusSerializer(allowed_msgpack_modules=None)]
)
def test_a_serializer_of_values_changes_nothing(server: DevServer, serde: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saver = InMemorySaver(server=server.address, serde=serde)
    builder = StateGraph(MessagesState).add_node("say", lambda state: {"messages": ["b"]}).add_edge(START, "say")
    graph = builder.compile(saver, name="plain-serde")
    config: Any = {"configurable": {"thread_id": f"plain-serde-{id(serde)}"}}
    graph.invoke({"messages": ["a"]}, config)
    assert [message.content for message in graph.get_state(config).values["messages"]] == ["a", "b"]


def test_one_that_pickles_is_ignored_with_a_warning() -> None:
    with pytest.warns(IgnoredSerializer, match="a value without a JSON form is an error of its node") as caught:
        InMemorySaver(serde=jsonplus.JsonPlusSerializer(pickle_fallback=True))
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize(
    "serde", [encrypted.EncryptedSerializer(Rot()), Own(), Rot(), "json"], ids=lambda one: type(one).__name__
)
def test_one_that_may_encrypt_is_refused(serde: Any) -> None:
    with pytest.raises(NotImplementedError) as refused:
        InMemorySaver(serde=serde)
    said = str(refused.value)
    assert f"does not call {type(serde).__name__}; what it would encrypt would be stored readable" in said
    for remedy in ("leave serde out", "serve --encryption-keys FILE (docs/encryption.md)", "GraphdSaver(serde=…)"):
        assert remedy in said


def test_a_saver_of_langgraph_encrypts(server: DevServer) -> None:
    base = importlib.import_module("langgraph.checkpoint.base")
    kept = importlib.import_module("graphd.checkpoint.langgraph").GraphdSaver
    ours = importlib.import_module("graphd.checkpoint.serde.encrypted").EncryptedSerializer
    config: Any = {"configurable": {"thread_id": "encrypted", "checkpoint_ns": ""}}
    checkpoint = {**base.empty_checkpoint(), "channel_values": {"word": "secret"}, "channel_versions": {"word": 1}}
    sealing = kept(server.address, serde=ours(Rot()))
    stored = sealing.put(config, checkpoint, {"source": "input", "step": -1}, {"word": 1})
    assert sealing.get_tuple(stored).checkpoint["channel_values"] == {"word": "secret"}
    with pytest.raises(NotImplementedError, match=re.escape("msgpack+rot")):
        kept(server.address).get_tuple(stored)


@pytest.mark.parametrize("module", ["jsonplus", "encrypted"])
def test_they_need_the_package_of_langgraph(module: str) -> None:
    name = {"jsonplus": "JsonPlusSerializer", "encrypted": "EncryptedSerializer"}[module]
    program = f"""
import sys
sys.modules["langgraph"] = None
import graphd.checkpoint
from graphd.errors import MissingPackageError
try:
    from graphd.checkpoint.serde.{module} import {name}
except MissingPackageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    needed = f"graphd.checkpoint.serde.{module} needs langgraph-checkpoint: pip install langgraph-checkpoint\n"
    assert done.stdout == needed, done.stderr

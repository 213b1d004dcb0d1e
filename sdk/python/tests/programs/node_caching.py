"""Caching: a node that was asked the same before does not work again."""

from typing import Any, TypedDict

from langgraph.cache.memory import InMemoryCache
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy

out: list[Any] = []
worked: list[str] = []


class Translation(TypedDict, total=False):
    text: str
    reader: str
    words: list[str]
    result: str


def split(state: Translation) -> Translation:
    worked.append("split")
    return {"words": state["text"].split()}


def translate(state: Translation) -> Translation:
    worked.append("translate")
    return {"result": " ".join(word[::-1] for word in state["words"])}


def greet(state: Translation) -> Translation:
    worked.append("greet")
    return {"result": f"{state['reader']}: {state['result']}"}


def key_of_words(state: Any) -> str:
    return " ".join(state["words"]).lower()


builder = StateGraph(Translation)
builder.add_node("split", split)
builder.add_node("translate", translate, cache_policy=CachePolicy(key_func=key_of_words))
builder.add_node("greet", greet)
builder.add_edge(START, "split")
builder.add_edge("split", "translate")
builder.add_edge("translate", "greet")
builder.add_edge("greet", END)
graph = builder.compile(cache=InMemoryCache())
uncached = builder.compile()


def run(compiled: Any, text: str, reader: str) -> None:
    chunks = list(compiled.stream({"text": text, "reader": reader}, stream_mode="updates"))
    out.append([chunks, list(worked)])
    worked.clear()


run(graph, "a red hat", "Ann")
run(graph, "a red hat", "Bob")
run(graph, "A RED hat", "Cem")
run(graph, "a blue hat", "Dee")
graph.clear_cache(["translate"])
run(graph, "a red hat", "Eva")
run(uncached, "a red hat", "Fox")
run(uncached, "a red hat", "Gil")

# Without a key function the whole input of the node counts.
builder = StateGraph(Translation)
builder.add_node("split", split, cache_policy=CachePolicy(ttl=3600))
builder.add_edge(START, "split")
graph = builder.compile(cache=InMemoryCache())
for reader in ("Ann", "Ann", "Bob"):
    run(graph, "one two", reader)

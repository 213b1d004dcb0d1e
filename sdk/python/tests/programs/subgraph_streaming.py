"""Streams with subgraphs: each item comes with the graph that it is from."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

out: list[Any] = []


class Page(TypedDict, total=False):
    title: str
    words: int
    text: str


class Book(TypedDict, total=False):
    titles: list[str]
    words: Annotated[int, operator.add]


def draft(page: Page) -> Page:
    return {"text": f"{page['title']} is short"}


def proofread(page: Page) -> Page:
    return {"text": page["text"] + interrupt({"proofread": page["text"]})}


def count(page: Page) -> Page:
    return {"words": len(page["text"].split())}


chapter = StateGraph(Page)
chapter.add_sequence([draft, proofread, count])
chapter.add_edge(START, "draft")


def hand_out(book: Book) -> list[Send]:
    return [Send("chapter", {"title": title}) for title in book["titles"]]


builder = StateGraph(Book)
builder.add_node("plan", lambda book: {"words": 2})
builder.add_node("chapter", chapter.compile())
builder.add_node("print", lambda book: {"titles": [*book["titles"], f"{book['words']} words"]})
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", hand_out, ["chapter"])
builder.add_edge("chapter", "print")
builder.add_edge("print", END)
graph = builder.compile(checkpointer=InMemorySaver())


def show(chunk: dict[str, Any]) -> Any:
    return {k: sorted(str(q.value) for q in v) if k == "__interrupt__" else v for k, v in chunk.items()}


def tell(thread: str, given: Any, **options: Any) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    items = []
    for item in graph.stream(given, config, **options):
        namespace, *rest = item if isinstance(item, tuple) else ((), item)
        where = [level.split(":")[0] for level in namespace]
        items.append([where, *[show(part) if isinstance(part, dict) else part for part in rest]])
    out.append([thread, items])


tell("flat", {"titles": ["Moss"]})
tell("flat", Command(resume=" and green"))
for mode in ("updates", "values", ["values", "updates"]):
    tell(f"deep {mode}", {"titles": ["Moss"]}, subgraphs=True, stream_mode=mode)
    tell(f"deep {mode}", Command(resume=" and soft"), subgraphs=True, stream_mode=mode)

config: Any = {"configurable": {"thread_id": "two"}}
asked = {q.value["proofread"]: q.id for q in graph.invoke({"titles": ["Fern", "Lichen"]}, config)["__interrupt__"]}
out.append(sorted(asked))
out.append(graph.invoke(Command(resume={id: f", says {text[0]}" for text, id in asked.items()}), config))

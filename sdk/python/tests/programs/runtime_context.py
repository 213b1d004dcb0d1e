"""Runtime context: what a run is for stands beside the state, and every node can read it."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime

out: list[Any] = []


@dataclass
class Reader:
    name: str
    language: Literal["en", "fr"] = "en"


class Letter(TypedDict, total=False):
    body: str
    greeting: str
    end: str


GREETINGS = {"en": "Dear", "fr": "Cher"}


def greet(state: Letter, runtime: Runtime[Reader]) -> Letter:
    return {"greeting": f"{GREETINGS[runtime.context.language]} {runtime.context.name}"}


def write(state: Letter, config: RunnableConfig) -> Letter:
    return {"body": f"{state['body']} ({config['configurable'].get('desk', 'no desk')}, {config['tags']})"}


def sign(state: Letter) -> Letter:
    reader = get_runtime(Reader).context
    return {"end": f"yours, {get_config()['metadata'].get('author', 'nobody')} for {reader.name}"}


def choose(state: Letter, runtime: Runtime[Reader]) -> Literal["sign", "__end__"]:
    return "sign" if runtime.context.language == "en" else END


builder = StateGraph(Letter, context_schema=Reader)
builder.add_node(greet)
builder.add_node(write)
builder.add_node(sign)
builder.add_edge(START, "greet")
builder.add_edge("greet", "write")
builder.add_conditional_edges("write", choose)
graph = builder.compile()

for context in (Reader("Ida"), Reader("Jean", language="fr"), {"name": "Kim", "language": "en"}):
    config: Any = {"configurable": {"desk": "desk 7"}, "tags": ["letters"], "metadata": {"author": "Lou"}}
    out.append(graph.invoke({"body": "it rains"}, config, context=context))
out.append(graph.with_config({"tags": ["post"]}).invoke({"body": "it snows"}, context=Reader("Max")))

for wrong in ({"name": "Kim", "colour": "red"}, {"language": "en"}):
    try:
        out.append(graph.invoke({"body": "no"}, context=wrong))
    except TypeError as error:
        out.append(type(error).__name__)

"""Routing: a model with a structured answer decides which writer takes the request."""

from typing import Any, Literal, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

out: list[Any] = []


class Route(BaseModel):
    step: Literal["recipe", "repair", "travel"]
    reason: str = ""


class RouterModel(GenericFakeChatModel):
    """Chooses by the words of the request."""

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        words = {"cook": "recipe", "broken": "repair", "visit": "travel"}

        def choose(messages: list[Any]) -> Any:
            text = messages[-1].content
            found = next((step for word, step in words.items() if word in text), "travel")
            return schema(step=found, reason=f"{len(messages)} messages")

        return RunnableLambda(choose)


class Desk(TypedDict, total=False):
    request: str
    route: Route
    output: str


router = RouterModel(messages=iter([])).with_structured_output(Route)
writer = GenericFakeChatModel(messages=iter([AIMessage(f"answer {n}") for n in range(9)]))


def choose_route(state: Desk) -> Desk:
    return {"route": router.invoke([SystemMessage("Route it."), HumanMessage(state["request"])])}


def make_writer(name: str) -> Any:
    def write(state: Desk) -> Desk:
        said = writer.invoke([SystemMessage(f"You write about {name}."), HumanMessage(state["request"])])
        return {"output": f"{name}: {said.content} because of {state['route'].reason}"}

    return write


def next_step(state: Desk) -> str:
    return f"write_{state['route'].step}"


builder = StateGraph(Desk)
builder.add_node("choose_route", choose_route)
for name in ("recipe", "repair", "travel"):
    builder.add_node(f"write_{name}", make_writer(name))
    builder.add_edge(f"write_{name}", END)
builder.add_edge(START, "choose_route")
builder.add_conditional_edges("choose_route", next_step, ["write_recipe", "write_repair", "write_travel"])
graph = builder.compile()

for request in ("cook a trout", "my lamp is broken", "visit Oslo", "something else"):
    state = graph.invoke({"request": request})
    out.append([type(state["route"]).__name__, state["route"].model_dump(), state["output"]])
    out.append([next(iter(chunk)) for chunk in graph.stream({"request": request})])

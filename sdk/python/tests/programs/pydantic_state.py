"""Pydantic state: what comes in is checked and converted, and nodes get models."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field, ValidationError, field_validator

out: list[Any] = []


class Passenger(BaseModel):
    name: str
    age: int = Field(ge=0)


class Booking(BaseModel):
    passengers: list[Passenger]
    seats: int = 0
    total: float = 0.0
    note: str | None = None

    @field_validator("note")
    @classmethod
    def shorten(cls, note: str | None) -> str | None:
        return note and note.strip()


def count(state: Booking) -> dict[str, Any]:
    out.append([type(state).__name__, type(state.passengers[0]).__name__, state.seats])
    return {"seats": len([p for p in state.passengers if p.age >= 2])}


def price(state: Booking) -> dict[str, Any]:
    return {"total": sum(40.0 if p.age < 14 else 80.0 for p in state.passengers), "note": f"{state.seats} seats"}


def spoil(state: Booking) -> dict[str, Any]:
    return {"seats": "many"}


builder = StateGraph(Booking)
builder.add_node(count)
builder.add_node(price)
builder.add_edge(START, "count")
builder.add_edge("count", "price")
builder.add_edge("price", END)
graph = builder.compile()


def show(state: dict[str, Any]) -> Any:
    """The state as its model: LangGraph returns what was given, and graphd returns models."""
    return Booking.model_validate(state).model_dump()


family = [{"name": "Ana", "age": "41"}, {"name": "Ben", "age": 1}]
out.append(show(graph.invoke({"passengers": family, "note": "  window  "})))
out.append(show(graph.invoke(Booking(passengers=[Passenger(name="Cy", age=13)]))))
for state in graph.stream({"passengers": family}, stream_mode="updates"):
    out.append(state)

for wrong in ({}, {"passengers": [{"name": "Dee", "age": -1}]}, {"passengers": "Eve"}):
    try:
        graph.invoke(wrong)
    except ValidationError as error:
        out.append([[".".join(map(str, e["loc"])), e["type"]] for e in error.errors()])

# What a node returns is checked when the next node reads it.
builder = StateGraph(Booking)
builder.add_node(spoil)
builder.add_node(price)
builder.add_edge(START, "spoil")
builder.add_edge("spoil", "price")
try:
    builder.compile().invoke({"passengers": family})
except ValidationError as error:
    out.append([[".".join(map(str, e["loc"])), e["type"]] for e in error.errors()])

"""Orchestrator and workers: a plan that a model makes, a worker for each part of it, and one that puts all together."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel, Field

out: list[Any] = []


class Section(BaseModel):
    name: str
    words: int = Field(gt=0)


class Task(TypedDict):
    number: int
    section: Section
    topic: str


class Report(TypedDict, total=False):
    topic: str
    sections: list[Section]
    written: Annotated[list[tuple[int, str]], operator.add]
    report: str


planner = GenericFakeChatModel(messages=iter([AIMessage("history 3, songs 1, food 2"), AIMessage("nothing")]))
failures = {"songs": 1}


def plan(state: Report) -> Report:
    said = planner.invoke([SystemMessage("Plan a report."), HumanMessage(state["topic"])]).content
    pairs = [part.split() for part in said.split(", ")]
    return {"sections": [Section(name=pair[0], words=int(pair[1])) for pair in pairs if len(pair) == 2]}


def assign(state: Report) -> list[Send] | str:
    tasks = [Task(number=n, section=s, topic=state["topic"]) for n, s in enumerate(state["sections"])]
    return [Send("write_section", task) for task in tasks] or "join"


def write_section(task: Task) -> dict[str, Any]:
    section = task["section"]
    if failures.get(section.name, 0):
        failures[section.name] -= 1
        raise ConnectionError("the model is busy")
    text = " ".join([f"{section.name} of {task['topic']}"] * section.words)
    if section.words > 2:
        text = interrupt({"too long": text, "section": section.name})
    return {"written": [(task["number"], text)]}


def join(state: Report) -> Report:
    parts = dict(state.get("written", []))
    text = " / ".join(parts[number] for number in sorted(parts))
    return {"report": text or f"nothing to say about {state['topic']}"}


builder = StateGraph(Report)
builder.add_node(plan)
builder.add_node(write_section, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
builder.add_node(join)
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", assign, ["write_section", "join"])
builder.add_edge("write_section", "join")
graph = builder.compile(checkpointer=InMemorySaver())

config: Any = {"configurable": {"thread_id": "wales"}}
out.append([question.value for question in graph.invoke({"topic": "Wales"}, config)["__interrupt__"]])
out.append(sorted(text for _, text in graph.get_state(config).values["written"]))
state = graph.invoke(Command(resume="a short history"), config)
out.append([[section.model_dump() for section in state["sections"]], len(state["written"]), state["report"]])
out.append(graph.invoke({"topic": "Nowhere"}, {"configurable": {"thread_id": "nowhere"}})["report"])

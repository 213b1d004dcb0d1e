"""Evaluator and optimizer: a joke is written, graded and rewritten with the feedback until it is good enough."""

from typing import Any, Literal, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

out: list[Any] = []


class Grade(BaseModel):
    grade: Literal["funny", "not funny"]
    feedback: str = ""


class Joke(TypedDict, total=False):
    topic: str
    joke: str
    feedback: str
    grade: Grade


class Comedian:
    def __init__(self, *jokes: str) -> None:
        self.model = GenericFakeChatModel(messages=iter([AIMessage(joke) for joke in jokes]))
        self.prompts: list[str] = []

    def write(self, state: Joke) -> Joke:
        prompt = f"A joke about {state['topic']}"
        if state.get("feedback"):
            prompt += f", but {state['feedback']}"
        self.prompts.append(prompt)
        return {"joke": str(self.model.invoke(prompt).content)}


def evaluate(state: Joke) -> Joke:
    words = len(state["joke"].split())
    grade = Grade(grade="funny") if words < 6 else Grade(grade="not funny", feedback=f"{words} words are too many")
    return {"grade": grade, "feedback": grade.feedback}


def decide(state: Joke) -> str:
    return {"funny": "accepted", "not funny": "rejected"}[state["grade"].grade]


def build(comedian: Comedian) -> Any:
    builder = StateGraph(Joke)
    builder.add_node("write", comedian.write)
    builder.add_node("evaluate", evaluate)
    builder.add_edge(START, "write")
    builder.add_edge("write", "evaluate")
    builder.add_conditional_edges("evaluate", decide, {"accepted": END, "rejected": "write"})
    return builder.compile(checkpointer=InMemorySaver())


LONG = "A cat walks into a bar and then it says {} things"
for thread, jokes in {
    "first": ["Cats? Meow."],
    "third": [LONG.format("five"), "A cat says seven things to a dog", "A cat says meow"],
    "never": [LONG.format(n) for n in range(20)],
}.items():
    comedian = Comedian(*jokes)
    graph = build(comedian)
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 7}
    try:
        state = graph.invoke({"topic": "cats"}, config)
    except GraphRecursionError:
        state = graph.get_state(config).values
        out.append("no end")
    out.append([state["joke"], state["grade"].model_dump(), comedian.prompts])
    history = [[list(s.next), len(s.values.get("joke", ""))] for s in graph.get_state_history(config)]
    out.append(history)

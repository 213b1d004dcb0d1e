"""Dynamic interrupts: a form asks again until the answer is valid, field by field."""

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []
passes: list[str] = []


class Form(TypedDict, total=False):
    name: str
    age: int
    email: str
    problem: str


def ask_age(form: Form) -> Form:
    """Asks in a loop inside of one node."""
    question = f"How old are you, {form['name']}?"
    while True:
        answer = interrupt(question)
        passes.append(f"age: {answer}")
        if isinstance(answer, int) and 0 < answer < 150:
            return {"age": answer}
        question = f"{answer!r} is no age. How old are you?"


def ask_email(form: Form) -> Form:
    """Asks once, and the graph comes back here while the answer is wrong."""
    answer = interrupt({"ask": "your address", "problem": form.get("problem")})
    passes.append(f"email: {answer}")
    return {"email": answer}


def check_email(form: Form) -> Form:
    return {"problem": "" if "@" in form["email"] else f"{form['email']} has no @"}


def is_valid(form: Form) -> str:
    return "ask_email" if form["problem"] else END


builder = StateGraph(Form)
for node in (ask_age, ask_email, check_email):
    builder.add_node(node)
builder.add_edge(START, "ask_age")
builder.add_edge("ask_age", "ask_email")
builder.add_edge("ask_email", "check_email")
builder.add_conditional_edges("check_email", is_valid, ["ask_email", END])
graph = builder.compile(checkpointer=InMemorySaver())


def fill(name: str, *answers: Any) -> None:
    config: Any = {"configurable": {"thread_id": name}}
    for given in ({"name": name}, *(Command(resume=answer) for answer in answers)):
        state = graph.invoke(given, config)
        asked = [question.value for question in state.pop("__interrupt__", [])]
        out.append([asked, state, list(passes)])
        passes.clear()


fill("Uma", 30, "uma@example.org")
fill("Vic", "old", -3, 200, 41, "vic", "", "vic@example.org")
fill("Wes", 3.5, [30], {"age": 30}, 30, "@")

# An answer may come with a change of the state.
config: Any = {"configurable": {"thread_id": "Xia"}}
graph.invoke({"name": "Xia"}, config)
state = graph.invoke(Command(resume=20, update={"problem": "write clearly"}), config)
out.append([[question.value for question in state.pop("__interrupt__")], state, list(graph.get_state(config).next)])

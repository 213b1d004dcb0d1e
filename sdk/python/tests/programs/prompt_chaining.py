"""Prompt chaining: each prompt takes the answer of the one before, with a gate in between."""

from typing import Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph

out: list[Any] = []


class Slogan(TypedDict, total=False):
    product: str
    draft: str
    improved: str
    final: str


def make_chain(*answers: str) -> dict[str, Any]:
    """The nodes of one conversation with a model."""
    model = GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))
    seen: list[str] = []

    def ask(template: str, **values: Any) -> str:
        prompt = ChatPromptTemplate.from_messages([("system", "You write slogans."), ("human", template)])
        messages = prompt.format_messages(**values)
        seen.append(messages[-1].content)
        return str(model.invoke(messages).content)

    def draft(state: Slogan) -> Slogan:
        return {"draft": ask("A slogan for {product}", product=state["product"])}

    def improve(state: Slogan) -> Slogan:
        return {"improved": ask("Make this rhyme: {draft}", draft=state["draft"])}

    def polish(state: Slogan) -> Slogan:
        return {"final": ask("Shorten: {improved}", improved=state["improved"])}

    return {"draft": draft, "improve": improve, "polish": polish, "seen": seen}


def has_punch(state: Slogan) -> str:
    return "pass" if state["draft"].endswith("!") else "fail"


def run(product: str, *answers: str) -> None:
    nodes = make_chain(*answers)
    builder = StateGraph(Slogan)
    for name in ("draft", "improve", "polish"):
        builder.add_node(name, nodes[name])
    builder.add_edge(START, "draft")
    builder.add_conditional_edges("draft", has_punch, {"pass": "improve", "fail": END})
    builder.add_edge("improve", "polish")
    builder.add_edge("polish", END)
    graph = builder.compile()
    out.append(graph.invoke({"product": product}))
    out.append(nodes["seen"])


run("soap", "Clean hands!", "Clean hands in all lands!", "Clean hands, all lands")
run("rope", "It is a rope.")
run("tea", "Tea!", "Tea by the sea!", "Tea, sea")

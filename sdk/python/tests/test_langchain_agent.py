"""An agent of LangChain, whose tool calls a person reviews, on threads of graphd."""

from __future__ import annotations

from typing import Any

import pytest

from graphd.dev import DevServer

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.types import Command

from graphd.checkpoint.langgraph import GraphdSaver

paid: list[tuple[str, int]] = []


def pay(customer: str, amount: int) -> str:
    """Pays an amount to a customer."""
    paid.append((customer, amount))
    return f"paid {amount} to {customer}"


class ScriptedModel(BaseChatModel):
    """Asks for a payment, and repeats what the tool said."""

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            answer = AIMessage(f"{last.status}: {last.content}", id="answer")
        else:
            call = {"name": "pay", "args": {"customer": "ann", "amount": 10}, "id": "call-1"}
            answer = AIMessage("", tool_calls=[call], id="asks")
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def build_agent(server: DevServer) -> Any:
    """Another program each time: it shares nothing with the others but the thread."""
    review = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    return create_agent(ScriptedModel(), [pay], middleware=[review], checkpointer=GraphdSaver(server.address))


EDITED = {"type": "edit", "edited_action": {"name": "pay", "args": {"customer": "ann", "amount": 5}}}


@pytest.mark.parametrize(
    ("decision", "payments", "said"),
    [
        ({"type": "approve"}, [("ann", 10)], "paid 10 to ann"),
        (EDITED, [("ann", 5)], "paid 5 to ann"),
        ({"type": "reject", "message": "too much"}, [], "too much"),
    ],
    ids=["approve", "edit", "reject"],
)
def test_a_person_reviews_the_calls(
    server: DevServer, decision: dict[str, Any], payments: list[Any], said: str
) -> None:
    config: Any = {"configurable": {"thread_id": f"agent-{decision['type']}"}}
    paid.clear()
    asked = build_agent(server).invoke({"messages": [HumanMessage("pay ann")]}, config)
    (question,) = asked["__interrupt__"]
    assert question.value["action_requests"][0]["name"] == "pay"
    assert build_agent(server).get_state(config).interrupts == (question,)
    assert paid == []
    ended = build_agent(server).invoke(Command(resume={"decisions": [decision]}), config)
    assert paid == payments
    status, _, result = ended["messages"][-1].content.partition(": ")
    assert (status, said in result) == ("success" if payments else "error", True)
    assert build_agent(server).get_state(config).next == ()

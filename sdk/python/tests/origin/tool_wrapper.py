"""A wrapper that makes any tool ask a person first, in an agent that books hotels."""

from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.prebuilt.interrupt import ActionRequest, HumanInterrupt, HumanInterruptConfig
from langgraph.types import Command, interrupt

out: list[Any] = []
booked: list[str] = []

ALLOWED = HumanInterruptConfig(allow_accept=True, allow_edit=True, allow_respond=True, allow_ignore=False)


def ask_first(wrapped: BaseTool | Callable[..., Any], allowed: HumanInterruptConfig = ALLOWED) -> BaseTool:
    """The same tool to the model, that does nothing before a person has answered."""
    inner = wrapped if isinstance(wrapped, BaseTool) else tool(wrapped)

    @tool(inner.name, description=inner.description, args_schema=inner.args_schema)
    def asking(config: RunnableConfig, **args: Any) -> Any:
        request = HumanInterrupt(
            action_request=ActionRequest(action=inner.name, args=args),
            config=allowed,
            description=f"May {inner.name} be called?",
        )
        match interrupt(request):
            case {"type": "accept"}:
                return inner.invoke(args, config)
            case {"type": "edit", "args": {"args": edited}}:
                return inner.invoke(edited, config)
            case {"type": "response", "args": text}:
                return text
            case answer:
                raise ValueError(f"an answer is accept, edit or response, not {answer}")

    return asking


def book_hotel(hotel: str, nights: int = 1) -> str:
    """Books a room."""
    booked.append(f"{hotel} for {nights}")
    return f"a room in the {hotel} for {nights} nights"


@tool("cancel_hotel")
def cancel(hotel: str) -> str:
    """Cancels a room."""
    booked.append(f"not {hotel}")
    return f"no room in the {hotel}"


class Clerk(BaseChatModel):
    """Calls a tool with what the user says, and repeats what it got."""

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        name, _, hotel = messages[0].content.partition(" ")
        call = {"name": name, "args": {"hotel": hotel}, "id": f"call-{hotel}"}
        said = AIMessage(f"I have {messages[-1].content}") if len(messages) > 1 else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        out.append([[t.name, t.description, sorted(t.args)] for t in tools])
        return self

    @property
    def _llm_type(self) -> str:
        return "clerk"


def show(state: dict[str, Any]) -> list[Any]:
    return [[m.type, m.content, [c["args"] for c in getattr(m, "tool_calls", [])]] for m in state["messages"]]


agent: Any = create_react_agent(Clerk(), [ask_first(book_hotel), ask_first(cancel)], checkpointer=InMemorySaver())

ANSWERS: dict[str, Any] = {
    "accept": {"type": "accept"},
    "edit": {"type": "edit", "args": {"action": "book_hotel", "args": {"hotel": "Cheap Inn", "nights": 2}}},
    "response": {"type": "response", "args": "the guest stays at home"},
    "ignore": {"type": "ignore"},
}
for request in ("book_hotel Grand", "cancel_hotel Grand"):
    for kind, answer in ANSWERS.items():
        if (request, kind) == ("cancel_hotel Grand", "edit"):
            answer = {"type": "edit", "args": {"action": "cancel_hotel", "args": {"hotel": "Cheap Inn"}}}
        config: Any = {"configurable": {"thread_id": f"{request} {kind}"}}
        state = agent.invoke({"messages": [("user", request)]}, config)
        out.append([kind, [question.value for question in state["__interrupt__"]], show(state), list(booked)])
        try:
            state = agent.invoke(Command(resume=answer), config)
            out.append(["ended", show(state), list(booked)])
        except ValueError as error:
            out.append(["failed", str(error), list(booked)])
            out.append(show(agent.get_state(config).values))
        booked.clear()

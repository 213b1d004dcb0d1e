"""Handoffs: agents of a network pass a conversation on with a tool, and remember who is speaking."""

from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt

out: list[Any] = []


class Talk(MessagesState):
    active: str


def make_handoff(agent: str) -> Any:
    @tool(f"transfer_to_{agent}")
    def transfer(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Passes the conversation on."""
        told = ToolMessage(f"now with {agent}", name=f"transfer_to_{agent}", tool_call_id=tool_call_id)
        update = {"messages": [*state["messages"], told], "active": agent}
        return Command(goto=agent, graph=Command.PARENT, update=update)

    return transfer


def build_agent(name: str, knows: str, other: str) -> Any:
    """A subgraph: it answers what it knows, and transfers all else."""

    def speak(state: Talk) -> Any:
        asked = next(m for m in reversed(state["messages"]) if m.type == "human")
        if knows in asked.content:
            said = AIMessage(f"{name}: all about {knows}", name=name)
            return Command(goto="listen", graph=Command.PARENT, update={"messages": [said]})
        call = {"name": f"transfer_to_{other}", "args": {}, "id": f"{name}-{len(state['messages'])}"}
        return {"messages": [AIMessage("", tool_calls=[call], name=name)]}

    builder = StateGraph(Talk)
    builder.add_node("speak", speak)
    builder.add_node("tools", ToolNode([make_handoff(other)]))
    builder.add_edge(START, "speak")
    builder.add_edge("speak", "tools")
    return builder.compile()


def listen(state: Talk) -> Command[Literal["hotels", "flights"]]:
    text = interrupt(f"{state['active']} listens")
    return Command(update={"messages": [("user", text)]}, goto=state["active"])


def choose_first(state: Talk) -> str:
    return state.get("active") or "flights"


builder = StateGraph(Talk)
builder.add_node("flights", build_agent("flights", "wings", "hotels"), destinations=("hotels", "listen"))
builder.add_node("hotels", build_agent("hotels", "beds", "flights"), destinations=("flights", "listen"))
builder.add_node("listen", listen)
builder.add_conditional_edges(START, choose_first, ["flights", "hotels"])
graph = builder.compile(checkpointer=InMemorySaver())

config: Any = {"configurable": {"thread_id": "trip"}}
given: Any = {"messages": [("user", "tell me of beds")], "active": "flights"}
for text in ("and soft beds", "and wings", "wings again", "beds"):
    state = graph.invoke(given, config)
    out.append([state["active"], [q.value for q in state["__interrupt__"]]])
    out.append([[m.type, m.name, m.content] for m in state["messages"]])
    given = Command(resume=text)
for namespace, chunk in graph.stream(given, config, subgraphs=True):
    out.append([[level.split(":")[0] for level in namespace], sorted(chunk)])

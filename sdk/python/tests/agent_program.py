"""A program with agents for LangGraph. A test runs it on graphd, too, with its imports and savers changed.

``out`` is what it has seen.
"""

import asyncio
import warnings
from typing import Annotated, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState, create_react_agent, tools_condition
from langgraph.prebuilt.chat_agent_executor import AgentState, AgentStatePydantic, AgentStateWithStructuredResponse
from langgraph.prebuilt.interrupt import ActionRequest, HumanInterrupt, HumanInterruptConfig, HumanResponse
from langgraph.types import Command, interrupt
from pydantic import BaseModel

warnings.simplefilter("ignore")
out: list[Any] = []


class Verdict(BaseModel):
    good: bool
    text: str


class Scripted(BaseChatModel):
    """Calls the tools of the script in turn, then says what it has got."""

    script: list[list[tuple[str, dict[str, Any]]]]
    tool_names: tuple[str, ...] = ()

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        asked = sum(m.type == "ai" for m in messages)
        said = " / ".join(f"{m.type}:{m.content}" for m in messages)
        calls = [
            {"name": name, "args": args, "id": f"call-{asked}-{n}"}
            for n, (name, args) in enumerate(self.script[asked] if asked < len(self.script) else [])
        ]
        text = "" if calls else f"[{', '.join(self.tool_names)}] {said}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls, id=f"ai-{asked}"))])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        names = tuple(t["name"] if isinstance(t, dict) else t.name for t in tools)
        return self.model_copy(update={"tool_names": names})

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return Structured(schema)

    @property
    def _llm_type(self) -> str:
        return "scripted"


class Structured:
    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def invoke(self, messages: Any, config: Any = None) -> Any:
        made = {"good": True, "text": f"{len(messages)} messages, the first of {messages[0].type}"}
        return self.schema(**made) if isinstance(self.schema, type) else made

    async def ainvoke(self, messages: Any, config: Any = None) -> Any:
        return self.invoke(messages, config)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def greet(name: str, user: Annotated[str, InjectedState("user")]) -> str:
    """Greets."""
    return f"{user} greets {name}"


@tool(return_direct=True)
def final(text: str) -> str:
    """Says the last word."""
    return f"final {text}"


@tool
def approve(amount: int) -> str:
    """Asks a person."""
    request = HumanInterrupt(
        action_request=ActionRequest(action="approve", args={"amount": amount}),
        config=HumanInterruptConfig(allow_ignore=False, allow_respond=True, allow_edit=True, allow_accept=True),
        description="please",
    )
    answer: HumanResponse = interrupt(request)
    return f"{answer['type']} {answer['args']}"


class UserState(AgentState):
    user: str


class JudgedState(AgentStateWithStructuredResponse):
    user: str


class PydanticJudgedState(AgentStatePydantic):
    structured_response: Any = None


def tell(state: Any) -> Any:
    """What a state shows, without ids that are made up."""
    return [(m.type, m.content, m.name, [c["name"] for c in getattr(m, "tool_calls", [])]) for m in state["messages"]]


def run(label: str, agent: Any, given: Any = None, **config: Any) -> Any:
    given = given or {"messages": [("user", "go")]}
    state = agent.invoke(given, {"configurable": {"thread_id": label}, **config})
    asked = [i.value for i in state.get("__interrupt__", ())]
    rest = {k: v for k, v in state.items() if k not in ("messages", "__interrupt__")}
    out.append((label, tell(state), asked, {k: repr(v) for k, v in rest.items()}))
    return state


TWICE = [[("add", {"a": 1, "b": 2}), ("add", {"a": "x", "b": 2})], [("nope", {})]]

for version in ("v1", "v2"):
    agent = create_react_agent(Scripted(script=TWICE), [add, final], prompt="be kind", version=version, name="agent")
    run(f"tools-{version}", agent)
    direct = create_react_agent(
        Scripted(script=[[("final", {"text": "x"}), ("add", {"a": 1, "b": 1})]]), [add, final], version=version
    )
    run(f"direct-{version}", direct)
    review = create_react_agent(
        Scripted(script=[[("approve", {"amount": 5}), ("add", {"a": 1, "b": 2})]]),
        [approve, add],
        checkpointer=InMemorySaver(),
        version=version,
    )
    run(f"review-{version}", review)
    run(f"review-{version}", review, Command(resume={"type": "response", "args": "no"}))
    stateful = create_react_agent(
        Scripted(script=[[("greet", {"name": "bob"})]]), [greet], state_schema=UserState, version=version
    )
    run(f"injected-{version}", stateful, {"messages": [("user", "go")], "user": "ann"})
    run(
        f"limited-{version}",
        create_react_agent(Scripted(script=[[("add", {"a": 1, "b": 2})]] * 3), [add], version=version),
        recursion_limit=4,
    )

run("plain", create_react_agent(Scripted(script=[]), []))
run("structured", create_react_agent(Scripted(script=TWICE[:1]), [add], response_format=Verdict))
for judged in (JudgedState, PydanticJudgedState):
    run(
        f"structured-{judged.__name__}",
        create_react_agent(Scripted(script=[]), [], response_format=Verdict, state_schema=judged),
    )
run("prompted", create_react_agent(Scripted(script=[]), [], response_format=("judge", Verdict)))
run("schema", create_react_agent(Scripted(script=[]), [], response_format={"title": "verdict", "type": "object"}))
run("bound", create_react_agent(Scripted(script=[]).bind(tools=[{"name": "add"}]), [add]))
run("provided", create_react_agent(Scripted(script=[]), [add, {"type": "search", "name": "search"}]))
run("system", create_react_agent(Scripted(script=[]), [add], prompt=SystemMessage("system")))
run(
    "computed",
    create_react_agent(
        Scripted(script=[]),
        [],
        prompt=lambda state: [("system", f"{len(state['messages'])}")] and state["messages"][-1:],
    ),
)


def choose(state: Any, runtime: Any) -> Any:
    return Scripted(script=[], tool_names=(f"chosen for {len(state['messages'])}",))


run("dynamic", create_react_agent(choose, [add]))


def shorten(state: Any) -> Any:
    return {"llm_input_messages": [SystemMessage("short"), *state["messages"]]}


def guard(state: Any) -> Any:
    last = state["messages"][-1]
    if getattr(last, "tool_calls", None):
        answer = interrupt({"calls": [c["name"] for c in last.tool_calls]})
        if answer == "refuse":
            refused = [ToolMessage("refused", tool_call_id=c["id"], name=c["name"]) for c in last.tool_calls]
            return {"messages": refused}
    return {}


class Strict(AgentStatePydantic):
    user: str = "nobody"


pydantic = create_react_agent(
    Scripted(script=[[("greet", {"name": "bob"})]]),
    [greet],
    pre_model_hook=lambda state: {"llm_input_messages": [SystemMessage(state.user), *state.messages]},
    state_schema=Strict,
)
run("pydantic", pydantic, {"messages": [("user", "go")], "user": "ann"})
hooked = create_react_agent(Scripted(script=[[("add", {"a": 1, "b": 2})]] * 2), [add], pre_model_hook=shorten)
run("before", hooked)
for answer in ("refuse", "accept"):
    guarded = create_react_agent(
        Scripted(script=[[("add", {"a": 1, "b": 2})]]),
        [add],
        post_model_hook=guard,
        response_format=Verdict,
        checkpointer=InMemorySaver(),
    )
    run(f"after-{answer}", guarded)
    run(f"after-{answer}", guarded, Command(resume=answer))


@tool
def rename(user: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Changes the user."""
    told = ToolMessage(f"renamed to {user}", tool_call_id=tool_call_id, name="rename")
    return Command(update={"user": user, "messages": [told]})


for version in ("v1", "v2"):
    script = [[("rename", {"user": "bob"}), ("add", {"a": 1, "b": 2})], [("greet", {"name": "ann"})]]
    commanded = create_react_agent(
        Scripted(script=script), [rename, add, greet], state_schema=UserState, version=version
    )
    run(f"commanded-{version}", commanded, {"messages": [("user", "go")], "user": "ann"})
    paused = create_react_agent(
        Scripted(script=[[("add", {"a": 1, "b": 2})], [("nope", {})]]),
        [add],
        interrupt_before=["tools"],
        interrupt_after=["agent"],
        checkpointer=InMemorySaver(),
        version=version,
    )
    where: Any = {"configurable": {"thread_id": f"paused-{version}"}}
    for given in ({"messages": [("user", "go")]}, None, None, None):
        items = list(paused.stream(given, where, stream_mode="updates"))
        out.append([[name, tell(update) if update else update] for item in items for name, update in item.items()])
        out.append(list(paused.get_state(where).next))


async def run_async() -> None:
    async def choose_later(state: Any, runtime: Any) -> Any:
        return choose(state, runtime)

    async def say(state: Any) -> Any:
        return [SystemMessage("async"), *state["messages"]]

    chosen = create_react_agent(choose_later, [add], prompt=say)
    out.append(tell(await chosen.ainvoke({"messages": [("user", "go")]})))


asyncio.run(run_async())

for wrong in (
    lambda: create_react_agent(Scripted(script=[]), [add], version="v3"),
    lambda: create_react_agent(
        Scripted(script=[]), [add], state_schema=type("Empty", (dict,), {"__annotations__": {"x": int}})
    ),
    lambda: create_react_agent(Scripted(script=[]).bind(tools=[{"name": "other"}]), [add]),
    lambda: create_react_agent(Scripted(script=[]).bind(tools=[]), [add]),
    lambda: create_react_agent(Scripted(script=[]), [add], prompt=7),
    lambda: create_react_agent(Scripted(script=[]), []).invoke(
        {"messages": [AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}])]}
    ),
    lambda: tools_condition({"messages": []}),
):
    try:
        out.append(repr(wrong()))
    except Exception as error:
        out.append([kind.__name__ for kind in type(error).__mro__ if kind is ValueError])

calling = AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1, "b": 2}, "id": "1"}])
out.append(
    [tools_condition(s) for s in ({"messages": [calling]}, [calling], {"messages": [AIMessage("x")]}, [AIMessage("x")])]
)
out.append(tools_condition({"chat": [calling]}, messages_key="chat"))

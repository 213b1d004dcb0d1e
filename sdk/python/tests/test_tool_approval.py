"""People decide about calls of tools, one question for each call."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest

from graphd import START, Client, Command, InMemorySaver, MessagesState, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.errors import InvalidResumeError, NonDeterministicNode
from graphd.messages import AIMessage, ToolMessage
from graphd.prebuilt import InjectedState, Tool, ToolApproval, ToolDecision, ToolNode, add_human_in_the_loop
from graphd.remote import Question

made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


def pay(customer: str, amount: int, note: str = "") -> str:
    """Pays an amount to a customer."""
    made.append(f"{amount} to {customer}")
    return f"paid {amount} to {customer}"


async def look_up(customer: str) -> str:
    """Looks a customer up."""
    made.append(customer)
    return f"{customer} is known"


def note(text: str, state: Annotated[Any, InjectedState()]) -> str:
    return f"{text} after {len(state['messages'])}"


TOOLS: dict[str, Callable[..., Any]] = {"pay": pay}


def call(id: str, name: str = "pay", **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": args, "id": id}


class Chat:
    """A graph with one node of tools, which gets calls from a test."""

    def __init__(self, server: DevServer, name: str, node: Any) -> None:
        self.name, self.client = name, Client(server.address)
        builder = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
        self.graph = builder.compile(InMemorySaver(server=server.address), name=name)
        self.config: Any = {"configurable": {"thread_id": name}}

    def ask(self, *calls: Mapping[str, Any]) -> list[Question]:
        """The questions about these calls, in the order in which they are asked."""
        given = {"messages": [AIMessage("", id="asks", tool_calls=[*calls])]}
        asked = self.graph.invoke(given, self.config)["__interrupt__"]
        return [self.client.inbox.get(self.name, one.id) for one in asked]

    def find_questions(self) -> list[Question]:
        """The open questions."""
        return list(self.client.inbox.list(thread_id=self.name))

    def answer(self, **decisions: Any) -> list[tuple[str, str, str]]:
        """Answers the questions by the ids of their calls; what the model is told then."""
        ids = {q.value["tool_call_id"]: q.question_id for q in self.find_questions()}
        ended = self.graph.invoke(Command(resume={ids[c]: d for c, d in decisions.items()}), self.config)
        return [(m.tool_call_id, m.content, m.status) for m in ended["messages"] if m.type == "tool"]


def plain_node(approval: ToolApproval) -> Any:
    """A node of plain functions."""

    def tools(state: MessagesState) -> Any:
        decisions = approval.decide(state["messages"][-1].tool_calls)
        return {"messages": [d.build_answer(TOOLS[d.name](**d.args) if d.is_run else None) for d in decisions]}

    return tools


def tool_node(approval: ToolApproval) -> Any:
    return ToolNode([pay], wrap_tool_call=approval.wrap_tool_call)


def async_tool_node(approval: ToolApproval) -> Any:
    return ToolNode([pay, look_up], awrap_tool_call=approval.awrap_tool_call)


NODES = [plain_node, tool_node, async_tool_node]
every_node = pytest.mark.parametrize("make", NODES, ids=[make.__name__ for make in NODES])

CHANGED = (
    "A person has changed this call of pay before it was made. It was made with these arguments, and is not to be "
    'repeated with others: {"customer": "ann", "amount": 5}\npaid 5 to ann'
)
REJECTED = "A person has rejected this call of pay, and it was not made. "
DECISIONS: list[tuple[Any, str, str, list[str]]] = [
    ({"type": "approve"}, "paid 10 to ann", "success", ["10 to ann"]),
    ({"type": "edit", "args": {"customer": "ann", "amount": 5}}, CHANGED, "success", ["5 to ann"]),
    ({"type": "edit", "name": "pay", "args": {"customer": "ann", "amount": 5}}, CHANGED, "success", ["5 to ann"]),
    ({"type": "edit", "args": {"customer": "ann", "amount": 10}}, "paid 10 to ann", "success", ["10 to ann"]),
    ({"type": "reject", "message": "too much"}, REJECTED + "too much", "error", []),
    ({"type": "reject"}, REJECTED + "It is not to be repeated unless the user asks for it.", "error", []),
    ({"type": "respond", "message": "ann was paid by hand"}, "ann was paid by hand", "success", []),
]


@every_node
@pytest.mark.parametrize(("decision", "told", "status", "done"), DECISIONS)
def test_a_decision(server: DevServer, make: Any, decision: Any, told: str, status: str, done: list[str]) -> None:
    number = [d for d, *_ in DECISIONS].index(decision)
    chat = Chat(server, f"approval-{make.__name__}-{number}", make(ToolApproval([pay])))
    (question,) = chat.ask(call("c1", customer="ann", amount=10))
    assert made == []
    assert (question.reason, question.message) == ("tool_call", "Call the tool pay?")
    args = {"customer": "ann", "amount": 10}
    assert question.value == {"profile": "tool-approval/1", "tool_call_id": "c1", "name": "pay", "args": args}
    assert chat.answer(c1=decision) == [("c1", told, status)]
    assert made == done


REFUSED: list[tuple[Any, str]] = [
    ({"type": "edit", "name": "refund", "args": {"customer": "ann", "amount": 5}}, "name: value must be 'pay'"),
    ({"type": "edit", "args": {"customer": "ann", "amount": "five"}}, "args/amount: got string, want integer"),
    ({"type": "edit", "args": {"customer": "ann"}}, "args/amount: is missing"),
    ({"type": "edit", "args": {"customer": "ann", "amount": 5, "amuont": 6}}, "args/amuont: is not allowed here"),
    ({"type": "edit", "args": None}, "args: got null, want object"),
    ({"type": "edit"}, "args: is missing"),
    ({"type": "approve", "args": {"customer": "ann", "amount": 5}}, "args: is not allowed here"),
    ({"type": "reject", "message": 7}, "message: got number, want string"),
    ({"type": "reject", "args": {"customer": "ann", "amount": 5}}, "args: is not allowed here"),
    ({"type": "respond"}, "message: is missing"),
    ({"type": "accept"}, "type: value must be one of 'approve', 'edit', 'reject', 'respond'"),
    ({"type": "approve", "why": "so"}, "why: is not allowed here"),
    ({}, "type: is missing"),
    ("approve", "got string, want object"),
]


@every_node
def test_any_other_decision_is_refused(server: DevServer, make: Any) -> None:
    chat = Chat(server, f"approval-refused-{make.__name__}", make(ToolApproval([pay])))
    (question,) = chat.ask(call("c1", customer="ann", amount=10))
    for decision, problem in REFUSED:
        with pytest.raises(InvalidResumeError) as refused:
            chat.answer(c1=decision)
        assert problem in str(refused.value), decision
        assert chat.find_questions() == [question], "it is as open as before"
    assert made == []
    assert chat.answer(c1={"type": "approve"}) == [("c1", "paid 10 to ann", "success")]


@every_node
def test_a_rejected_call_leaves_the_others(server: DevServer, make: Any) -> None:
    chat = Chat(server, f"approval-two-{make.__name__}", make(ToolApproval([pay])))
    asked = chat.ask(call("c1", customer="ann", amount=10), call("c2", customer="bob", amount=20))
    assert [q.value["tool_call_id"] for q in asked] == ["c1", "c2"], "both are asked at once"
    assert chat.answer(c2={"type": "reject", "message": "no"}, c1={"type": "approve"}) == [
        ("c1", "paid 10 to ann", "success"),
        ("c2", REJECTED + "no", "error"),
    ]
    assert made == ["10 to ann"]


@every_node
def test_calls_are_answered_one_by_one(server: DevServer, make: Any) -> None:
    chat = Chat(server, f"approval-apart-{make.__name__}", make(ToolApproval([pay])))
    first, second = chat.ask(call("c1", customer="ann", amount=10), call("c2", customer="bob", amount=20))
    chat.client.inbox.answer(second, {"type": "approve"})
    assert chat.find_questions() == [first] and made == []
    assert [told for _, told, _ in chat.answer(c1={"type": "reject"})][1] == "paid 20 to bob"
    assert made == ["20 to bob"]


def test_only_allowed_decisions_are_taken(server: DevServer) -> None:
    approval = ToolApproval(
        [pay], allowed_decisions=["approve", "reject"], message=lambda c: f"Pay {c['args']['customer']}?"
    )
    chat = Chat(server, "approval-allowed", tool_node(approval))
    (question,) = chat.ask(call("c1", customer="ann", amount=10))
    assert question.message == "Pay ann?"
    assert list(question.schema["properties"]) == ["type", "message"]
    for decision in ({"type": "edit", "args": {"customer": "ann", "amount": 5}}, {"type": "respond", "message": "so"}):
        with pytest.raises(InvalidResumeError, match="type: value must be one of 'approve', 'reject'"):
            chat.answer(c1=decision)
    assert [status for *_, status in chat.answer(c1={"type": "reject"})] == ["error"]


@pytest.mark.parametrize("allowed", ["approve", "edit", "reject", "respond"])
def test_a_single_decision_may_be_allowed(server: DevServer, allowed: Any) -> None:
    chat = Chat(server, f"approval-only-{allowed}", tool_node(ToolApproval([pay], allowed_decisions=[allowed])))
    chat.ask(call("c1", customer="ann", amount=10))
    decisions = {d["type"]: d for d, *_ in DECISIONS}
    for kind in decisions.keys() - {allowed}:
        with pytest.raises(InvalidResumeError, match="type: "):
            chat.answer(c1=decisions[kind])
    assert len(chat.answer(c1=decisions[allowed])) == 1


def test_calls_of_other_tools_are_made_unasked(server: DevServer) -> None:
    chat = Chat(server, "approval-other", async_tool_node(ToolApproval([pay])))
    calls = call("c1", customer="ann", amount=10), call("c2", "look_up", customer="ann"), call("c3", "refund")
    (question,) = chat.ask(*calls)
    assert question.value["tool_call_id"] == "c1" and made == ["ann"]
    told = chat.answer(c1={"type": "reject", "message": "no"})
    assert made == ["ann"], "what has ended does not run again"
    assert told[1] == ("c2", "ann is known", "success") and "refund is not a valid tool" in told[2][1]


def test_a_tool_may_ask_after_its_approval(server: DevServer) -> None:
    def pay_twice(customer: str) -> str:
        return f"{customer} {interrupt('sure?')}"

    approval = ToolApproval([pay_twice])
    chat = Chat(server, "approval-twice", ToolNode([pay_twice], wrap_tool_call=approval.wrap_tool_call))
    chat.ask(call("c1", "pay_twice", customer="ann"))
    assert chat.answer(c1={"type": "edit", "args": {"customer": "bob"}}) == []
    ended = chat.graph.invoke(Command(resume="yes"), chat.config)
    assert ended["messages"][-1].content.endswith("\nbob yes")


def test_another_call_than_was_approved_is_not_made(server: DevServer) -> None:
    amounts = [10, 20]

    def tools(state: MessagesState) -> Any:
        (decision,) = ToolApproval([pay]).decide([call("c1", customer="ann", amount=amounts.pop(0))])
        return {"messages": [decision.build_answer(pay(**decision.args))]}

    chat = Chat(server, "approval-drift", tools)
    chat.ask()
    with pytest.raises(NonDeterministicNode, match="/args/amount"):
        chat.answer(c1={"type": "approve"})
    assert made == []


def test_who_decides_and_until_when(server: DevServer) -> None:
    approval = ToolApproval(
        [pay],
        assignees=("ana",),
        priority="high",
        ttl=0.2,
        on_expiry="resume_default",
        default={"type": "reject", "message": "nobody was there"},
    )
    chat = Chat(server, "approval-expiry", tool_node(approval))
    (question,) = chat.ask(call("c1", customer="ann", amount=10))
    assert (question.assignees, question.priority) == (("ana",), "high")
    run = chat.client.runs.get(chat.name, question.run_id)
    while not run.is_stopped or run.state == "interrupted":
        time.sleep(0.05)
        run = chat.client.runs.get(chat.name, question.run_id)
    assert run.output["messages"][-1]["content"] == REJECTED + "nobody was there"


def test_tools_are_declared_by_schemas(server: DevServer) -> None:
    """References in a schema hold where it is a part of another one."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"list": {"$ref": "#/$defs/node"}, "again": {"$ref": "#"}},
        "required": ["list"],
        "$defs": {"node": node},
    }
    approval = ToolApproval({"chain": schema, "free": None})

    def tools(state: MessagesState) -> Any:
        decisions = approval.decide(state["messages"][-1].tool_calls)
        return {"messages": [d.build_answer(d.args) for d in decisions]}

    chat = Chat(server, "approval-schemas", tools)
    chat.ask(call("c1", "chain", list={}), call("c2", "free"))
    wrong = [
        ({"list": {"next": {"name": 7}}}, "args/list/next/name: got number, want string"),
        ({"list": {}, "again": {}}, "args/again/list: is missing"),
        ([], "args: got array, want object"),
    ]
    for args, problem in wrong:
        with pytest.raises(InvalidResumeError, match=problem):
            chat.answer(c1={"type": "edit", "args": args}, c2={"type": "approve"})
    told = chat.answer(
        c1={"type": "edit", "args": {"list": {"next": {"name": "a"}}, "more": 1}},
        c2={"type": "edit", "args": {"x": []}},
    )
    assert [json.loads(text.partition("\n")[2]) for _, text, _ in told] == [
        {"list": {"next": {"name": "a"}}, "more": 1},
        {"x": []},
    ]


def test_arguments_that_the_graph_fills_in_are_not_asked_about(server: DevServer) -> None:
    approval = ToolApproval([note])
    chat = Chat(server, "approval-injected", ToolNode([note], wrap_tool_call=approval.wrap_tool_call))
    (question,) = chat.ask(call("c1", "note", text="a"))
    assert list(question.schema["properties"]["args"]["properties"]) == ["text"]
    assert chat.answer(c1={"type": "approve"}) == [("c1", "a after 1", "success")]


def test_a_tool_of_langchain(server: DevServer) -> None:
    tool = pytest.importorskip("langchain_core.tools").tool(pay)
    approval = ToolApproval([tool])
    chat = Chat(server, "approval-langchain", ToolNode([tool], wrap_tool_call=approval.wrap_tool_call))
    (question,) = chat.ask(call("c1", customer="ann", amount=10))
    assert question.schema["properties"]["args"]["required"] == ["customer", "amount"]
    for args, problem in (
        ({"customer": "ann", "amount": "five"}, "args/amount: got string, want integer"),
        ({"customer": "ann", "amount": 5, "amuont": 6}, "args/amuont: is not allowed here"),
    ):
        with pytest.raises(InvalidResumeError, match=problem):
            chat.answer(c1={"type": "edit", "args": args})
    assert chat.answer(c1={"type": "edit", "args": {"customer": "ann", "amount": 5}}) == [("c1", CHANGED, "success")]


def test_types_without_a_schema_are_asked_about_by_name(server: DevServer) -> None:
    class Shop:
        pass

    def buy(shop: Shop, item: str = "") -> str:
        return item

    buy.__annotations__["shop"] = Shop
    approval = ToolApproval([buy])
    chat = Chat(server, "approval-untyped", ToolNode([buy], wrap_tool_call=approval.wrap_tool_call))
    (question,) = chat.ask(call("c1", "buy", item="lamp"))
    assert question.schema["properties"]["args"] == {
        "description": "The arguments to use",
        "type": "object",
        "properties": {"shop": True, "item": True},
        "required": ["shop"],
        "additionalProperties": False,
    }


def test_without_pydantic_arguments_are_checked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    assert ToolApproval([pay])._arguments["pay"] == {
        "type": "object",
        "properties": {"customer": True, "amount": True, "note": True},
        "required": ["amount", "customer"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("ignore", [[], ["schema"]])
def test_an_answer_outlives_a_change_of_the_tool_where_that_is_said(server: DevServer, ignore: list[str]) -> None:
    schemas: list[Any] = [{"properties": {"amount": {}}}, {"properties": {"amount": {}, "note": {}}}]

    def tools(state: MessagesState) -> Any:
        approval = ToolApproval({"pay": schemas.pop(0)}, drift_ignore=ignore)
        (decision,) = approval.decide(state["messages"][-1].tool_calls)
        return {"messages": [decision.build_answer("paid")]}

    chat = Chat(server, f"approval-changed-{len(ignore)}", tools)
    chat.ask(call("c1", amount=10))
    if ignore:
        assert chat.answer(c1={"type": "approve"}) == [("c1", "paid", "success")]
    else:
        with pytest.raises(NonDeterministicNode, match="schema"):
            chat.answer(c1={"type": "approve"})


CALL = call("c1", customer="ann", amount=10)


def decide(kind: Any, **args: Any) -> ToolDecision:
    return ToolDecision(kind, "pay", args or CALL["args"], "c1", CALL["args"])


def test_what_a_decision_says() -> None:
    assert decide("approve").call == CALL and not decide("approve").is_changed
    edit = decide("edit", customer="bob", amount=1)
    assert edit.call == call("c1", customer="bob", amount=1) and edit.is_run and edit.is_changed
    assert not decide("edit", **CALL["args"]).is_changed
    assert not decide("reject").is_run and not decide("respond", customer="bob").is_changed


def test_the_change_is_told_wherever_the_answer_is() -> None:
    edit, notice = decide("edit", customer="bob"), "A person has changed this call of pay"
    answer, other = ToolMessage("done", tool_call_id="c1"), ToolMessage("other", tool_call_id="c2")
    assert edit.explain_change(answer).content.startswith(notice) and answer.content == "done"
    assert decide("approve").explain_change(answer) is answer
    told = edit.explain_change([other, Command(update={"messages": [answer, other], "user": "bob"})])
    assert told[0] is other and told[1].update["messages"][0].content.endswith("\ndone")
    assert told[1].update["messages"][1] is other and told[1].update["user"] == "bob"
    assert edit.explain_change(Command(update=[answer])).update[0].content.startswith(notice)
    assert edit.explain_change(Command(goto="end")) == Command(goto="end")
    blocks = ToolMessage([{"type": "text", "text": "done"}], tool_call_id="c1")
    assert [block["text"][:8] for block in edit.explain_change(blocks).content] == ["A person", "done"]


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ([], {}, ValueError, "tools is empty"),
    ({"pay": "any"}, {}, TypeError, "tools: the schema of 'pay' is 'any'; want a dict, or None"),
    ([7], {}, TypeError, "a tool must be a function; got 7"),
    (
        [pay],
        {"allowed_decisions": []},
        ValueError,
        r"allowed_decisions is \[\]: want a list of at least one of approve",
    ),
    ([pay], {"allowed_decisions": "approve"}, ValueError, "allowed_decisions is 'approve': want a list"),
    ([pay], {"allowed_decisions": ["accept"]}, ValueError, r"allowed_decisions is \['accept'\]"),
    ([pay], {"default": "approve"}, ValueError, "default is 'approve': want a decision of the type approve or edit"),
    (
        [pay],
        {"default": {"type": "edit"}, "allowed_decisions": ["approve", "reject"]},
        ValueError,
        "want a decision of the type approve or reject",
    ),
    ([pay], {"priority": "soon"}, ValueError, "priority is 'soon'"),
]


@pytest.mark.parametrize(("tools", "given", "kind", "words"), WRONG)
def test_a_wrong_argument_is_named(tools: Any, given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        ToolApproval(tools, **given)


def test_a_call_needs_an_id(server: DevServer) -> None:
    chat = Chat(server, "approval-no-id", lambda state: ToolApproval([pay]).decide([call("", customer="ann")]))
    with pytest.raises(ValueError, match="the call of the tool 'pay' has no id"):
        chat.ask()


def test_a_wrapped_tool_is_asked_about_by_its_own_schema() -> None:
    schemas = [ToolApproval([tool])._arguments["pay"] for tool in (pay, Tool.of(pay), add_human_in_the_loop(pay))]
    assert schemas[0] == schemas[1] == schemas[2] and schemas[0]["required"] == ["customer", "amount"]

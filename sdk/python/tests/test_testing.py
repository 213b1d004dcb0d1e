"""What programs test themselves with."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypedDict

import pytest

from graphd import END, START, AsyncClient, Client, InMemorySaver, StateGraph, interrupt
from graphd.errors import GraphdError
from graphd.remote import Dismissal, RunOptions
from graphd.testing import AnswerPolicy, IsolatedServer, UnexpectedQuestionError, UnusedAnswerError, isolated_server
from tests.graph_documents import COUNT, REFUND

pytest_plugins = ["graphd.testing.plugin", "pytester"]


class State(TypedDict, total=False):
    request: str
    decision: Any
    amount: int


def review(state: State) -> State:
    return {"decision": interrupt({"request": state["request"]}, message=f"Refund: {state['request']}?")}


def pay(state: State) -> State:
    return {"amount": interrupt({"proposed": 10}, reason="input")}


def builder_of_program(first: str = "review", second: str = "pay") -> StateGraph[Any]:
    builder = StateGraph(State).add_node(first, review).add_node(second, pay)
    return builder.add_edge(START, first).add_edge(first, second).add_edge(second, END)


def build_program() -> Any:
    return builder_of_program().compile(name="program")


CONFIG: Any = {"configurable": {"thread_id": "t1"}}


def test_a_program_runs_on_the_server_of_the_test(
    graphd_server: IsolatedServer, graphd_client: Client, graphd_answers: AnswerPolicy
) -> None:
    graphd_answers.on(node="review", message="Refund", answer="approved")
    graphd_answers.on(node="pay", answer=lambda question: question.value["proposed"] + 1)
    graph = build_program()
    state = graphd_answers.invoke(graph, {"request": "8841"}, CONFIG)
    assert state == {"request": "8841", "decision": "approved", "amount": 11}
    assert [(q.node, q.message, q.reason) for q in graphd_answers.answered] == [
        ("review", "Refund: 8841?", ""),
        ("pay", "", "input"),
    ]
    assert os.environ["GRAPHD_SERVER"] == graphd_server.address
    assert [thread.thread_id for thread in graphd_client.threads.list()] == ["t1"]


def test_the_server_of_another_test_is_another(graphd_client: Client, graphd_answers: AnswerPolicy) -> None:
    assert list(graphd_client.threads.list()) == []


async def test_async_programs_are_answered(graphd_async_client: AsyncClient, graphd_answers: AnswerPolicy) -> None:
    graphd_answers.on(node="review", answer="approved").on(reason="input", answer=3, times=1)
    state = await graphd_answers.ainvoke(build_program(), {"request": "1"}, CONFIG)
    assert state["amount"] == 3
    await graphd_async_client.graphs.put(REFUND)
    run = await graphd_async_client.runs.start("client-refund", {"request": "1"}, thread_id="t2")
    with pytest.raises(UnexpectedQuestionError, match=r"rules:\n  none"):
        await AnswerPolicy().acomplete(graphd_async_client, run.thread_id)
    answers = AnswerPolicy().on(message=re.compile("^Refund: [0-9]+$"), answer={"decision": "approved"})
    assert (await answers.acomplete(graphd_async_client, run.thread_id)).output["decision"] == "approved"


def test_an_unexpected_question_is_explained(graphd_client: Client) -> None:
    graphd_client.graphs.put(REFUND)
    graphd_client.runs.start("client-refund", {"request": "8841"}, thread_id="t1")
    answers = AnswerPolicy().on(node="review", message="Payout", answer={"decision": "approved"})
    with pytest.raises(UnexpectedQuestionError) as unexpected:
        answers.complete(graphd_client, "t1")
    text = str(unexpected.value)
    assert text.startswith(
        "no rule answers this question:\n"
        "  node 'review' of graph 'client-refund', thread 't1'\n"
        "  message: 'Refund: 8841'\n"
        "  reason: 'approval'\n"
        '  value: {"request":"8841"}\n'
        '  schema of the answer: {"type":"object",'
    )
    assert "rules:\n  1. node='review', message='Payout': used 0 times\n" in text
    assert text.endswith("to answer it: answers.on(node='review', message='Refund: 8841', answer=…)")
    assert isinstance(unexpected.value, AssertionError) and unexpected.value.questions[0].node == "review"
    with pytest.raises(UnusedAnswerError, match="node='review', message='Payout': used 0 times"):
        answers.check_used()
    AnswerPolicy().on(node="review", optional=True).check_used()


def test_a_rule_is_used_up(graphd_client: Client) -> None:
    graphd_client.graphs.put(REFUND)
    answers = AnswerPolicy().on(answer={"decision": "approved"}, times=1)
    for thread in ("t1", "t2"):
        graphd_client.runs.start("client-refund", {"request": "1"}, thread_id=thread)
    assert answers.complete(graphd_client, "t1").state == "succeeded"
    with pytest.raises(UnexpectedQuestionError, match="used 1 of 1 times"):
        answers.complete(graphd_client, "t2")
    with pytest.raises(ValueError, match="times is 0: want 1 or more"):
        answers.on(times=0)


def test_questions_are_dismissed_and_breakpoints_passed(graphd_client: Client) -> None:
    graphd_client.graphs.put(REFUND)
    options = RunOptions(interrupt_before=["read"])
    graphd_client.runs.start("client-refund", {"request": "1"}, thread_id="t1", options=options)
    with pytest.raises(UnexpectedQuestionError, match="reason: 'breakpoint'"):
        AnswerPolicy().complete(graphd_client, "t1")
    answers = AnswerPolicy().on(reason="breakpoint").on(reason="approval", answer=Dismissal("nobody is here"))
    with pytest.raises(Exception, match="nobody is here"):
        answers.complete(graphd_client, "t1")
    answers.check_used()


def test_an_answer_that_does_not_fit_fails_the_test(graphd_client: Client) -> None:
    graphd_client.graphs.put(REFUND)
    graphd_client.runs.start("client-refund", {"request": "1"}, thread_id="t1")
    with pytest.raises(GraphdError) as refused:
        AnswerPolicy().on(answer={"decision": "perhaps"}).complete(graphd_client, "t1")
    assert refused.value.reason == "RESPONSE_SCHEMA_MISMATCH"


def test_a_dismissal_needs_a_client(graphd_server: IsolatedServer) -> None:
    with pytest.raises(TypeError, match="use complete with a client"):
        AnswerPolicy().on(answer=Dismissal("no")).invoke(build_program(), {"request": "1"}, CONFIG)


def test_a_graph_that_asks_without_end_fails_the_test(graphd_server: IsolatedServer) -> None:
    def ask(state: State) -> State:
        return {"decision": interrupt("again?")}

    builder = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", "ask")
    with pytest.raises(UnexpectedQuestionError, match=r"still asks after 100 rounds[^\n]*\n  node 'ask'"):
        AnswerPolicy().on(answer="yes").invoke(builder.compile(name="endless"), {"request": "1"}, CONFIG)


def test_threads_of_a_saver_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ids have a beginning in the server that the program does not see."""
    monkeypatch.delenv("GRAPHD_SERVER", raising=False)
    answers = AnswerPolicy().on(node="review", answer="yes").on(node="pay", answer=1)
    for _ in range(2):
        graph = builder_of_program().compile(InMemorySaver())
        assert answers.invoke(graph, {"request": "1"}, CONFIG)["amount"] == 1
    assert [question.node for question in answers.answered] == ["review", "pay"] * 2
    with pytest.raises(ValueError, match=r"the run keeps no thread: want a thread_id in config\['configurable'\]"):
        answers.invoke(builder_of_program().compile(), {"request": "1"}, CONFIG)


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_SERVER", "production:7700")
    monkeypatch.setenv("GRAPHD_TOKEN", "s3cret")
    with isolated_server() as server:
        assert os.environ["GRAPHD_SERVER"] == server.address and "GRAPHD_TOKEN" not in os.environ
        graph = build_program()  # one graph for two servers
        assert AnswerPolicy().on(node="review").on(node="pay", answer=1).invoke(graph, {"request": "1"}, CONFIG)
    assert os.environ["GRAPHD_SERVER"] == "production:7700" and os.environ["GRAPHD_TOKEN"] == "s3cret"
    with isolated_server() as other:
        state = AnswerPolicy().on(node="review").on(node="pay", answer=2).invoke(graph, {"request": "1"}, CONFIG)
        assert state["amount"] == 2 and other.address != ""


def test_a_restart_keeps_a_store_in_a_file() -> None:
    with isolated_server(store="sqlite") as server:
        client = server.client()
        client.graphs.put(COUNT)
        stream = client.runs.stream("client-count", {"left": 50}, thread_id="t1")
        seen = [next(stream).data["step"]["log"][0]]
        server.restart()
        assert seen + [item.data["step"]["log"][0] for item in stream] == list(range(50, 0, -1))
    with isolated_server() as server, pytest.raises(ValueError, match='want "sqlite"'):
        server.restart()


@pytest.fixture
def graphd_store(request: pytest.FixtureRequest) -> str:
    return "sqlite" if request.node.name == "test_the_store_is_chosen_by_a_fixture" else "memory"


def test_the_store_is_chosen_by_a_fixture(graphd_server: IsolatedServer, graphd_client: Client) -> None:
    graphd_client.threads.create("t1")
    graphd_server.restart()
    assert graphd_client.threads.get("t1").state == "idle"


def test_a_suite_has_the_fixtures(pytester: pytest.Pytester) -> None:
    """A suite elsewhere, which has nothing of this one: an unused answer fails it, after the test."""
    source = str(Path(__file__).parents[1] / "src")
    pytester.makeconftest(f'import sys\nsys.path.insert(0, {source!r})\npytest_plugins = ["graphd.testing.plugin"]')
    pytester.makepyfile(
        """
        def test_used(graphd_client, graphd_answers):
            assert list(graphd_client.threads.list()) == []

        def test_unused(graphd_answers):
            graphd_answers.on(node="review", answer="yes")
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*UnusedAnswerError: these questions were not asked:*", "*node='review': used 0 times*"])

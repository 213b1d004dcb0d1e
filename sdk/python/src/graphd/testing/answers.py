"""Answers the questions of runs by rules, in place of people."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphd.compiled import Pregel
from graphd.remote import Answer, AsyncClient, Client, Dismissal, Question, Run
from graphd.testing.rules import Rule, describe_question
from graphd.threads import run_blocking
from graphd.values.command import Command

_ROUNDS = 100


class UnexpectedQuestionError(AssertionError):
    """A graph has asked what no rule is for, or asks without end. ``questions`` are those that are open."""

    def __init__(self, text: str, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        super().__init__(text)


class UnusedAnswerError(AssertionError):
    """A rule has answered no question."""


class AnswerPolicy:
    """Answers questions by rules; the first that fits counts, and a question without one fails the test::

    answers = AnswerPolicy()
    answers.on(node="review", message="Refund", answer={"decision": "approved"})
    answers.on(node="amount", answer=lambda question: question.value["proposed"])
    state = answers.invoke(graph, {"request": "…"}, {"configurable": {"thread_id": "t1"}})
    answers.check_used()
    """

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self.answered: list[Question] = []
        """The questions that were answered, in order, as they were asked."""

    def on(
        self,
        *,
        node: str | None = None,
        message: str | re.Pattern[str] | None = None,
        graph: str | None = None,
        reason: str | None = None,
        answer: Any | Callable[[Question], Any] | Dismissal = None,
        times: int | None = None,
        optional: bool = False,
    ) -> AnswerPolicy:
        """Adds a rule: questions that fit all arguments get this answer. Returns the policy.

        ``message`` is a part of the message, or a pattern that is found in it. ``answer`` is a value, a function of
        the question, or a ``Dismissal``; a breakpoint (``reason="breakpoint"``) is passed, whatever it is. ``times``
        is how many questions the rule answers at most. ``check_used`` lets an ``optional`` rule be unused.
        """
        if times is not None and times < 1:
            raise ValueError(f"times is {times!r}: want 1 or more, or None for any number")
        self._rules.append(Rule(node, message, graph, reason, answer, times, optional))
        return self

    def find_answers(self, questions: Sequence[Question]) -> dict[str, Any]:
        """The answers to questions by their ids; raises UnexpectedQuestionError when there is no rule for one."""
        found: dict[str, Any] = {}
        for question in questions:
            rule = next((one for one in self._rules if one.fits(question)), None)
            if rule is None:
                raise UnexpectedQuestionError(self._explain_unexpected(question), questions)
            found[question.question_id] = rule.give_answer(question)
        self.answered.extend(questions)
        return found

    def check_used(self) -> None:
        """Raises UnusedAnswerError when a rule has answered nothing."""
        unused = [str(rule) for rule in self._rules if not rule.used and not rule.optional]
        if unused:
            raise UnusedAnswerError("\n  ".join(["these questions were not asked:", *unused]))

    # Runs of any graph, by a client.

    def complete(self, client: Client, thread_id: str, *, timeout: float | None = 60.0) -> Run:
        """Waits for the newest run of a thread, and answers what it asks until it has succeeded.

        Raises why it failed, and CallTimeoutError when one wait takes longer than ``timeout`` seconds.
        """
        for _ in range(_ROUNDS):
            run = client.runs.wait(thread_id, timeout=timeout)
            questions = list(client.inbox.list(thread_id=thread_id)) if run.state == "interrupted" else []
            if not questions:
                return run
            client.runs.resume(thread_id, self._write_answers(questions))
        raise self._endless(questions)

    async def acomplete(self, client: AsyncClient, thread_id: str, *, timeout: float | None = 60.0) -> Run:
        """Like complete, for async programs."""
        for _ in range(_ROUNDS):
            run = await client.runs.wait(thread_id, timeout=timeout)
            listed = client.inbox.list(thread_id=thread_id)
            questions = [one async for one in listed] if run.state == "interrupted" else []
            if not questions:
                return run
            await client.runs.resume(thread_id, self._write_answers(questions))
        raise self._endless(questions)

    # Graphs of this process.

    def invoke(self, graph: Pregel, input: Any, config: Mapping[str, Any], **options: Any) -> Any:
        """Like ``graph.invoke``, with all questions answered; raises what it raises."""
        client, thread = graph_client(graph, config)
        result = graph.invoke(input, config, **options)
        for _ in range(_ROUNDS):
            questions = list(client.inbox.list(thread_id=thread))
            if not questions:
                return result
            result = graph.invoke(self._write_command(questions), config, **options)
        raise self._endless(questions)

    async def ainvoke(self, graph: Pregel, input: Any, config: Mapping[str, Any], **options: Any) -> Any:
        """Like invoke, for async programs."""
        client, thread = await run_blocking(graph_client, graph, config)
        result = await graph.ainvoke(input, config, **options)
        for _ in range(_ROUNDS):
            questions = await run_blocking(lambda: list(client.inbox.list(thread_id=thread)))
            if not questions:
                return result
            result = await graph.ainvoke(self._write_command(questions), config, **options)
        raise self._endless(questions)

    def _write_answers(self, questions: Sequence[Question]) -> list[Answer | Dismissal] | None:
        found = self.find_answers(questions)
        asked = [one for one in questions if not _is_breakpoint(one)]
        return [_write_answer(found[q.question_id], q) for q in asked] or None

    def _write_command(self, questions: Sequence[Question]) -> Command[Any] | None:
        found = self.find_answers(questions)
        for question in questions:
            if isinstance(found[question.question_id], Dismissal):
                raise TypeError("answer is a Dismissal, which graph.invoke does not know: use complete with a client")
        asked = {q.question_id: found[q.question_id] for q in questions if not _is_breakpoint(q)}
        return Command(resume=asked) if asked else None

    def _explain_unexpected(self, question: Question) -> str:
        rules = [f"{number}. {rule}" for number, rule in enumerate(self._rules, 1)] or ["none"]
        named = f"node={question.node!r}" + (f", message={question.message!r}" if question.message else "")
        return "\n".join(
            [
                f"no rule answers this question:\n  {describe_question(question)}",
                "\n  ".join(["rules:", *rules]),
                f"to answer it: answers.on({named}, answer=…)",
            ]
        )

    def _endless(self, questions: Sequence[Question]) -> UnexpectedQuestionError:
        asked = "\n  ".join(describe_question(one) for one in questions)
        text = f"the run still asks after {_ROUNDS} rounds of answers; limit a rule with times=…\n  {asked}"
        return UnexpectedQuestionError(text, questions)


def _is_breakpoint(question: Question) -> bool:
    return question.reason == "breakpoint"


def _write_answer(given: Any, question: Question) -> Answer | Dismissal:
    return given if isinstance(given, Dismissal) else Answer(given, question.question_id)


def graph_client(graph: Pregel, config: Mapping[str, Any]) -> tuple[Client, str]:
    """A client of the server of a graph, and the id there of the thread of a config."""
    server, thread = graph.locate_thread(config)
    return Client(server.address, security=server.target.security), thread

"""One answer to many questions goes on over broken streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.errors import AccessDeniedError, GraphdError, ServerUnavailableError
from graphd.remote.caller import AsyncCaller, Caller
from graphd.remote.inbox import AsyncInbox, Inbox
from graphd.transport import unary


class Break(grpc.RpcError):
    """The end of a stream."""

    def __init__(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "broken"

    def trailing_metadata(self) -> tuple[()]:
        return ()


class OneRepetition:
    """Attempts that permit one repetition, without a pause."""

    def __init__(self, **_: Any) -> None:
        self._left = 1

    def next_pause(self, problem: GraphdError) -> float:
        if isinstance(problem, AccessDeniedError) or not self._left:
            raise problem
        self._left -= 1
        return 0.0


class FakeInterrupts:
    """Gives so many outcomes in each stream, and breaks it when there is an error."""

    def __init__(self, *streams: int | tuple[int, Break]) -> None:
        self._streams = list(streams)
        self.requests: list[ins.AnswerInterruptsRequest] = []

    def read(self, request: ins.AnswerInterruptsRequest) -> Iterator[ins.AnswerOutcome]:
        self.requests.append(request)
        stream = self._streams.pop(0)
        most, error = stream if isinstance(stream, tuple) else (stream, None)
        for target in list(request.targets.targets)[:most]:
            yield ins.AnswerOutcome(thread_id=target.thread_id, interrupt_id=target.interrupt_id, stored=True)
        if error is not None:
            raise error

    async def aread(self, request: ins.AnswerInterruptsRequest) -> AsyncIterator[ins.AnswerOutcome]:
        for outcome in self.read(request):
            yield outcome

    @property
    def asked(self) -> list[list[str]]:
        return [[target.thread_id for target in request.targets.targets] for request in self.requests]


def build_questions(count: int) -> list[Any]:
    return [SimpleNamespace(thread_id=f"t{n}", question_id=f"q{n}", seen="") for n in range(count)]


async def answer(fake: FakeInterrupts, count: int, asynchronous: bool) -> Sequence[Any]:
    read: Any = fake.aread if asynchronous else fake.read
    stubs = SimpleNamespace(interrupts=SimpleNamespace(AnswerInterrupts=lambda request, timeout: read(request)))
    server = cast(Any, SimpleNamespace(stubs=stubs, astubs=stubs))
    if asynchronous:
        return await AsyncInbox(AsyncCaller(server, None)).answer_many(build_questions(count), "yes", request_id="r")
    return Inbox(Caller(server, None)).answer_many(build_questions(count), "yes", request_id="r")


pytestmark = pytest.mark.parametrize("asynchronous", [False, True])


@pytest.fixture(autouse=True)
def one_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unary, "Attempts", OneRepetition)


async def test_a_broken_stream_goes_on_with_the_questions_without_an_outcome(asynchronous: bool) -> None:
    fake = FakeInterrupts((2, Break()), (1, Break()), (1, Break()), 9)
    outcomes = await answer(fake, 5, asynchronous)
    assert [o.thread_id for o in outcomes] == ["t0", "t1", "t2", "t3", "t4"]
    assert fake.asked == [["t0", "t1", "t2", "t3", "t4"], ["t2", "t3", "t4"], ["t3", "t4"], ["t4"]]
    assert {request.request_id for request in fake.requests} == {"r"}


async def test_a_stream_that_breaks_after_the_last_outcome_is_not_repeated(asynchronous: bool) -> None:
    fake = FakeInterrupts((2, Break()))
    assert len(await answer(fake, 2, asynchronous)) == 2
    assert len(fake.requests) == 1


async def test_streams_without_outcomes_end_the_call(asynchronous: bool) -> None:
    fake = FakeInterrupts((1, Break()), (0, Break()), 9)
    with pytest.raises(ServerUnavailableError) as raised:
        await answer(fake, 3, asynchronous)
    assert fake.asked == [["t0", "t1", "t2"], ["t1", "t2"]]
    assert [o.thread_id for o in raised.value.outcomes] == ["t0"] and raised.value.request_id == "r"


async def test_an_error_tells_the_outcomes_of_all_calls_before_it(asynchronous: bool) -> None:
    fake = FakeInterrupts(500, (3, Break(grpc.StatusCode.PERMISSION_DENIED)))
    with pytest.raises(AccessDeniedError) as raised:
        await answer(fake, 600, asynchronous)
    assert [o.thread_id for o in raised.value.outcomes] == [f"t{n}" for n in range(503)]
    assert raised.value.request_id == "r"

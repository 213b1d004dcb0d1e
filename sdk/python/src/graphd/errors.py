"""Errors, under the names that LangGraph programs catch.

Every failure carries the stable ``reason`` of graphd where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from graphd.compatibility.imports import explain_absent_names
from graphd.values.command import Command, Interrupt


class ErrorCode(Enum):
    """Codes that LangGraph documents; they end the messages of its errors."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"


def with_code(message: str, code: ErrorCode) -> str:
    """Appends a code to a message, so that it survives as text."""
    return f"{message}\nError code: {code.value}"


class EmptyChannelError(Exception):
    """A state key was read before anything was written to it."""


class GraphRecursionError(RecursionError):
    """The run took more supersteps than its recursion limit allows."""


class InvalidUpdateError(Exception):
    """The state can't take what was written to it."""


class EmptyInputError(Exception):
    """There is nothing to run: no input, and nothing left to do."""


class TaskNotFound(Exception):
    """A task is not known any more."""


class GraphBubbleUp(Exception):
    """What leaves a node without being a failure of it."""


class GraphInterrupt(GraphBubbleUp):
    """A node asks people. It must leave the node, so don't catch it."""

    def __init__(self, interrupts: Sequence[Interrupt] = ()) -> None:
        super().__init__(tuple(interrupts))

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The questions."""
        return tuple(self.args[0])


class NodeInterrupt(GraphInterrupt):
    """A question raised as an exception; ``interrupt()`` is the newer way."""

    def __init__(self, value: Any, id: str | None = None) -> None:
        super().__init__((Interrupt(value=value, id=id or ""),))


class GraphDrained(GraphBubbleUp):
    """The run stopped between two supersteps because it was asked to."""

    def __init__(self, reason: str = "shutdown") -> None:
        self.reason = reason
        super().__init__(f"Graph drained: {reason}")


class ParentCommand(GraphBubbleUp):
    """A command for the enclosing graph."""

    def __init__(self, command: Command[Any]) -> None:
        super().__init__(command)

    @property
    def command(self) -> Command[Any]:
        """The command."""
        command: Command[Any] = self.args[0]
        return command


class InterruptDismissed(Exception):
    """The question of this node was declined."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason or "the question was dismissed")


class InterruptExpired(Exception):
    """The question of this node had no answer in time."""


class DroppedQuestions(UserWarning):
    """An update has withdrawn open questions: they take no answers any more."""


class OmittedValue(UserWarning):
    """Something is not shown: it is larger than a message of the server may be, or the caller may not read it."""


class IgnoredSerializer(UserWarning):
    """A saver was given a serializer that pickles what has no JSON form: graphd does not."""


class MissingPackageError(ImportError):
    """A call needs a package that is not installed.

    ``needed_by`` is what needs it, ``package`` what to install.
    """

    def __init__(self, needed_by: str, package: str) -> None:
        self.needed_by, self.package = needed_by, package
        super().__init__(f"{needed_by} needs {package}: pip install {package}", name=package)


class NonDeterministicNode(Exception):
    """On its replay the node did not do what its journal says it did."""


@dataclass(frozen=True)
class NodeError:
    """What an error handler is told: which node failed, and how."""

    node: str
    error: BaseException


class NodeCancelledError(Exception):
    """The code of a node raised ``asyncio.CancelledError`` on its own."""

    def __init__(self, node: str, message: str | None = None) -> None:
        self.node = node
        super().__init__(message or f"Node {node!r} raised asyncio.CancelledError")


class NodeTimeoutError(Exception):
    """A node took longer than its timeout allows; times are in seconds."""

    def __init__(
        self,
        node: str,
        elapsed: float,
        *,
        kind: Literal["run", "idle"],
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
    ) -> None:
        self.node, self.elapsed, self.kind = node, elapsed, kind
        self.idle_timeout, self.run_timeout = idle_timeout, run_timeout
        self.timeout = (run_timeout if kind == "run" else idle_timeout) or elapsed
        super().__init__(f"Node {node!r} exceeded its {kind} timeout of {self.timeout:.3f}s (elapsed: {elapsed:.3f}s).")


class RemoteNodeError(Exception):
    """A node failed in another process; ``type`` names its own exception."""

    def __init__(self, message: str, *, type: str = "", node: str = "", reason: str = "", stack: str = "") -> None:
        self.type, self.node, self.reason, self.stack = type, node, reason, stack
        super().__init__(message)

    def __repr__(self) -> str:
        return f"{self.type or 'RemoteNodeError'}({str(self)!r})"


class GraphdError(RuntimeError):
    """graphd refused a call. ``reason`` is stable, the message is for people.

    ``server_reason`` is the reason as the server has it: the same but for UnknownInterruptError.
    ``retry_delay`` is how many seconds the server asks to wait, None when it says nothing.
    ``outcomes`` are those that ``inbox.answer_many`` has had before, ``request_id`` is its id to go on with.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: Mapping[str, str] | None = None,
        retry_delay: float | None = None,
    ) -> None:
        self.reason, self.server_reason = reason, reason
        self.code, self.retry_delay = code, retry_delay
        self.request_id, self.outcomes = "", list[Any]()
        self.metadata = dict(metadata or {})
        self.violations = dict(violations or {})
        super().__init__(message)


class InvalidGraphError(GraphdError, ValueError):
    """graphd found the graph invalid; ``violations`` lists every problem."""


class InvalidSecurityError(GraphdError, ValueError):
    """How calls are to be protected is wrong, and nothing was sent.

    ``option`` is the argument of Security, ``problem`` says what is wrong, ``want`` what would be right.
    """

    def __init__(self, option: str, problem: str, want: str) -> None:
        self.option, self.problem, self.want = option, problem, want
        super().__init__(f"{problem}: {want}", violations={option: problem})


class UnauthenticatedError(GraphdError):
    """The server does not accept the credentials of the caller, or there are none to send."""


class AccessDeniedError(GraphdError, PermissionError):
    """The caller may not do this."""


class ThreadBusyError(GraphdError):
    """Another run of the thread is active."""


class UnknownInterruptError(GraphdError):
    """An answer does not fit the questions that are open. Nothing of the call is stored.

    ``reason`` says how it does not: ``"not_pending"``, it names questions that are not open, ``interrupt_ids``,
    or nothing is open; ``"ambiguous"``, it names none, while several are open. ``pending_ids`` are the open
    questions, ten at most. LangGraph raises the same when it resumes strictly; its ``"empty_map"`` does not
    occur, as ``{}`` is an answer. ``server_reason`` tells apart what ``"not_pending"`` stands for.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        interrupt_ids: Sequence[str] = (),
        pending_ids: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata, **details)
        if reason not in _RESUME_REASONS:
            self.reason = "ambiguous" if reason == "RESPONSE_AMBIGUOUS" else "not_pending"
        self.interrupt_ids = tuple(interrupt_ids) or _split_ids(self.metadata.get("interruptId"))
        self.pending_ids = tuple(pending_ids) or _split_ids(self.metadata.get("openInterruptIds"))


_RESUME_REASONS = ("not_pending", "empty_map", "ambiguous")


def _split_ids(text: str | None) -> tuple[str, ...]:
    return tuple(sorted(text.split(","))) if text else ()


class NothingToResumeError(UnknownInterruptError):
    """An answer was given, but nothing waits for one."""


class AmbiguousResumeError(UnknownInterruptError):
    """One answer was given, but several questions wait; answer by id."""


class InvalidResumeError(GraphdError, ValueError):
    """An answer is not what the schema of its question wants. Nothing of the call is stored."""


_INVALID_RESUME = "_graphd_invalid_resume"


def mark_invalid_resume(error: BaseException) -> None:
    """Makes is_invalid_resume true of an exception."""
    setattr(error, _INVALID_RESUME, True)


def is_invalid_resume(error: BaseException) -> bool:
    """Whether an exception says that an answer does not fit the ``response_schema`` of its question.

    The question is open, and can be answered again.
    """
    return isinstance(error, InvalidResumeError) or getattr(error, _INVALID_RESUME, False) is True


class NotFoundError(GraphdError, LookupError):
    """There is no such thread, run, question, checkpoint or graph, or the caller may not see it."""


class InterruptNotFoundError(UnknownInterruptError, NotFoundError):
    """There is no such question in the thread, or the caller may not see it."""


class AlreadyExistsError(GraphdError):
    """There is a thread, run or graph of this name, with other content.

    Of a thread that belongs to another graph, ``metadata["graph"]`` is its graph.
    """


class ConflictError(GraphdError):
    """What was to be changed has changed since it was read: read it again, and decide again."""


class OpenQuestionsError(GraphdError):
    """The thread waits for answers; ``question_ids`` names the open questions."""

    @property
    def question_ids(self) -> tuple[str, ...]:
        """The ids of the open questions."""
        return tuple(filter(None, self.metadata.get("openInterruptIds", "").split(",")))


class LimitExceededError(GraphdError):
    """What was asked for, or what a node made, is beyond a limit of the server."""

    @property
    def limit(self) -> str:
        """The option of the server that sets the limit; "" when none does."""
        return self.metadata.get("limit", "")

    @property
    def most(self) -> int | None:
        """Its value."""
        return _parse_number(self.metadata.get("most"))

    @property
    def need(self) -> int | None:
        """What was asked for, or at least so much; None when it is not known."""
        return _parse_number(self.metadata.get("need"))


def _parse_number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


class ServerBusyError(GraphdError):
    """The server has as much to do as it may; try again after ``retry_delay`` seconds."""


class StoreFullError(GraphdError):
    """The store has no space left. Nothing was changed; threads can be read and deleted."""


class StoreReplacedError(GraphdError):
    """The store is not the one that the server opened; an operator has to act."""


class ServerUnavailableError(GraphdError, ConnectionError):
    """The server or its store can't be reached, or there is no worker for the node."""


class TLSError(ServerUnavailableError):
    """Client and server do not agree on how to protect the connection: one refuses the certificate of the other."""


class CallTimeoutError(GraphdError, TimeoutError):
    """A call had no answer in its time. What it asked for may be done all the same, and a run goes on."""


class OutcomeUnknownError(ServerUnavailableError):
    """A change was made, or it was not. The same call with the same request id finds out."""


if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

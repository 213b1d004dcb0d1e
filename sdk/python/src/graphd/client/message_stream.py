"""The "messages" stream: tokens, and the messages that nodes return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

from graphd import codec, messages
from graphd._gen.v1 import event_pb2 as pb
from graphd.client.called_task import CalledTask
from graphd.constants import NAMESPACE_SEPARATOR
from graphd.declare.program import Program
from graphd.names import public_levels, public_name


class MessageStream:
    """Finds the messages of a run, each one once."""

    def __init__(self, config: Mapping[str, Any], program: Callable[[tuple[str, ...]], Program | None]) -> None:
        self._program = program
        self._metadata = dict(config.get("metadata") or {})
        if (thread := (config.get("configurable") or {}).get("thread_id")) is not None:
            self._metadata.setdefault("thread_id", thread)
        self._seen: set[str] = set()
        self._triggers: dict[str, tuple[str, ...]] = {}
        self._restarts: dict[str, int] = {}

    def mark_seen(self, state: Any) -> None:
        """Messages of the state were there before; they are no news."""
        self._seen.update(message.id for message in _find_messages(state) if message.id is not None)

    def record_triggers(self, event: pb.Event) -> None:
        """Remembers what a task was triggered by."""
        self._triggers[event.task_id] = tuple(event.task.triggers)

    def record_restart(self, event: pb.Event) -> None:
        """Remembers that a task begins anew: its pieces come again, and say so."""
        self._restarts[event.task_id] = self._restarts.get(event.task_id, 0) + 1

    def emitted_messages(self, event: pb.Event) -> Iterator[tuple[Any, dict[str, Any]]]:
        """A token or message that a node emits on the way."""
        value = codec.value_of(event.message.value)
        extra: dict[str, Any] = {}
        if isinstance(value, dict) and set(value) == {"message", "metadata"}:
            value, extra = value["message"], value["metadata"]
        message = messages.read_stored(value) if isinstance(value, Mapping) else value
        if messages.is_message(message):
            self._seen.add(_ensure_id(message))
        yield message, self._build_metadata(event) | extra

    def returned_messages(self, event: pb.Event, value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The messages in the result of a node."""
        for message in _find_messages(value):
            if _ensure_id(message) not in self._seen:
                self._seen.add(message.id)
                yield message, self._build_metadata(event)

    def task_messages(self, event: pb.Event, told: CalledTask) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The messages in the result of a task that the code of a node called."""
        for message, metadata in self.returned_messages(event, told.result):
            yield message, metadata | told.build_metadata(metadata)

    def _build_metadata(self, event: pb.Event) -> dict[str, Any]:
        node = public_name(event.node)
        about = {
            "langgraph_step": event.step,
            "langgraph_node": node,
            "langgraph_triggers": self._triggers.get(event.task_id, ()),
            "langgraph_path": ("__pregel_pull", node),
            "langgraph_checkpoint_ns": NAMESPACE_SEPARATOR.join([*event.namespace, f"{node}:{event.task_id}"]),
        }
        if restarts := self._restarts.get(event.task_id):
            about["graphd_restarts"] = restarts
        return self._metadata | self._node_metadata(event) | about

    def _node_metadata(self, event: pb.Event) -> dict[str, Any]:
        """What the node was declared with."""
        program = self._program(public_levels(event.namespace))
        node = program.nodes.get(public_name(event.node)) if program is not None else None
        return dict(node.metadata) if node is not None else {}


def _ensure_id(message: Any) -> str:
    """The id of a message; one without gets one: it is no other message's repetition."""
    if message.id is None:
        message.id = str(uuid4())
    return str(message.id)


def _find_messages(value: Any) -> Iterator[Any]:
    if messages.is_message(value):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            for item in one if isinstance(one, list) else [one]:
                if messages.is_message(item) and getattr(item, "type", "") != "remove":
                    yield item
    elif isinstance(value, list):
        for one in value:
            if messages.is_message(one):
                yield one
            else:
                yield from _find_messages(one)

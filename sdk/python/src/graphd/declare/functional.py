"""A graph of a single function, and how its input and result are kept as a state."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from graphd import codec
from graphd.channels import EphemeralValue, LastValue
from graphd.codec import decoder_of
from graphd.constants import END, START
from graphd.declare.actions import Action
from graphd.declare.builder import Builder
from graphd.declare.nodes import NodeDeclaration, Policies
from graphd.declare.schema import Key, Schema
from graphd.errors import InvalidGraphError

INPUT, OUTPUT, PREVIOUS = "input", "output", "previous"
"""The keys of the state: what the function was called with, what it returned, and what it keeps."""

Split = Callable[[Any], tuple[Any, Any]]
"""Makes of what the function returned its value, and what the next call gets as ``previous``."""


@dataclasses.dataclass(frozen=True)
class ValueTypes:
    """The annotations of a function: its values have these types when they are read back."""

    input: Any = Any
    output: Any = Any
    previous: Any = Any


class FunctionBuilder(Builder):
    """Declares a graph whose only node is a function."""

    def __init__(
        self, action: Action, types: ValueTypes, policies: Policies, split: Split, context_schema: Any = None
    ) -> None:
        self.split = split
        self.keys = {
            INPUT: Key(INPUT, EphemeralValue(types.input), None, decoder_of(types.input)),
            OUTPUT: Key(OUTPUT, LastValue(types.output), None, decoder_of(types.output)),
            PREVIOUS: Key(PREVIOUS, LastValue(types.previous), None, decoder_of(types.previous)),
        }
        super().__init__(
            self._build_schema(*self.keys),
            context_schema,
            input_schema=self._build_schema(INPUT),
            output_schema=self._build_schema(OUTPUT),
        )
        if policies.timeout is not None and not action.is_async:
            text = f"entrypoint {action.name!r} has a timeout, so it must be async: a running thread can't be stopped"
            raise InvalidGraphError(text, reason="INVALID_GRAPH")
        self.nodes[action.name] = NodeDeclaration(
            name=action.name,
            target=action.call,
            action=dataclasses.replace(action, call=self._wrap_call(action)),
            schema=dataclasses.replace(self._build_schema(INPUT, PREVIOUS), construct=lambda read: read.get(INPUT)),
            policies=policies,
        )
        self.add_edge(START, action.name).add_edge(action.name, END)

    def _build_schema(self, *names: str) -> Schema:
        return Schema(None, {name: self.keys[name] for name in names}, lambda read: read)

    def _wrap_call(self, action: Action) -> Callable[..., Any]:
        """The function, with its result as an update of the state."""
        if action.is_async:

            @functools.wraps(action.call)
            async def acall(*given: Any, **named: Any) -> dict[str, Any]:
                return self.build_update(await action.call(*given, **named))

            return acall

        @functools.wraps(action.call)
        def call(*given: Any, **named: Any) -> dict[str, Any]:
            return self.build_update(action.call(*given, **named))

        return call

    def build_update(self, result: Any) -> dict[str, Any]:
        """What the function returned, as an update of the state."""
        value, kept = self.split(result)
        return {OUTPUT: codec.Tagged(value), PREVIOUS: codec.Tagged(kept)}

    def build_input(self, given: Any) -> dict[str, Any]:
        """What the function is called with, as an input of the graph."""
        return {INPUT: codec.Tagged(given)}

    def read_key(self, name: str, stored: Any) -> Any:
        """A value of a state; None when it is not set."""
        value = stored.get(name) if isinstance(stored, Mapping) else None
        return None if value is None else self.keys[name].decode(value)


__all__ = ["INPUT", "OUTPUT", "PREVIOUS", "FunctionBuilder", "ValueTypes"]

"""The shape of an answer: the JSON Schema that people are shown, and the object that a node gets."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd.errors import mark_invalid_resume


class RefusedAnswer(Exception):
    """The class of a question does not take the answer: the text says why, ``error`` is what it raised."""

    def __init__(self, error: Any) -> None:
        self.error = error
        lines = [f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}" for e in error.errors()]
        super().__init__("; ".join(lines))


@dataclass(frozen=True)
class ResponseSchema:
    """What an answer must be."""

    json_schema: Mapping[str, Any] | None
    adapter: Any = None  # pydantic's, None where an answer stays JSON

    def read_answer(self, answer: Any) -> Any:
        """The answer as the node gets it; RefusedAnswer when the class does not take it."""
        if self.adapter is None:
            return answer
        pydantic = importlib.import_module("pydantic")
        try:
            return self.adapter.validate_json(codec.dumps(answer))
        except pydantic.ValidationError as error:
            mark_invalid_resume(error)
            raise RefusedAnswer(error) from error


def read_response_schema(given: Any) -> ResponseSchema:
    """Reads the ``response_schema`` of a question; TypeError when it is none."""
    if given is None or isinstance(given, Mapping):
        return ResponseSchema(given)
    try:
        return _adapt(given)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _adapt.__wrapped__(given)


@functools.lru_cache(maxsize=256)
def _adapt(given: Any) -> ResponseSchema:
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise TypeError(
            "response_schema: a class needs pydantic (pip install pydantic); without it give a dict"
        ) from None
    try:
        adapter = pydantic.TypeAdapter(given)
        return ResponseSchema(adapter.json_schema(), adapter)
    except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation) as error:
        want = "give a JSON Schema (dict), a pydantic model, a TypedDict or a dataclass"
        raise TypeError(f"response_schema: {given!r:.200} has no JSON Schema; {want}: {error}") from error

"""Whether a node asks what was answered: the digest of what a question shows.

docs/worker-protocol.md says what the form is; the server makes the same one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from graphd import codec
from graphd.runtime.secret import hide_parts

Drift = Literal["fail", "ask_again", "accept"]
DRIFTS: tuple[Drift, ...] = ("fail", "ask_again", "accept")
_PARTS = ("message", "schema", "value")
_POINTER = re.compile(r"(/([^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")
_ALONE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_LONGEST_EXPONENT = 9


class _Number(str):
    """A number as it is written."""


def check_drift(drift: str | None, ignore: Iterable[str]) -> tuple[str, ...]:
    """The parts that may differ; ValueError when either says nothing useful."""
    if drift is not None and drift not in DRIFTS:
        raise ValueError(f"drift must be one of {', '.join(map(repr, DRIFTS))}, not {drift!r}")
    if isinstance(ignore, str):
        raise ValueError(f"drift_ignore must be a list, like [{ignore!r}]")
    parts = tuple(ignore)
    for part in parts:
        if part not in _PARTS and not _POINTER.fullmatch(part):
            raise ValueError(
                f"drift_ignore has {part!r}; it takes JSON pointers into the value, like '/asked_at', "
                "and 'message', 'schema', 'value'"
            )
    return parts


def digest_question(value: Any, message: str, schema: Any, ignore: Sequence[str], secret: Sequence[str] = ()) -> str:
    """The digest of what a question with this value shows."""
    text = codec.dumps(value)
    return digest_json(text, message, None if schema is None else codec.dumps(schema), ignore, secret)


def digest_json(value: str, message: str, schema: str | None, ignore: Sequence[str], secret: Sequence[str] = ()) -> str:
    """The same of the JSON texts."""
    return hashlib.sha256(canonical_form(value, message, schema, ignore, secret).encode()).hexdigest()


def digest_secrets(question_id: str, value: Any, ignore: Sequence[str], secret: Sequence[str]) -> str:
    """The digest of a value with its secret parts, for the question of an id; empty when nothing in it is secret."""
    return digest_secret_json(question_id, codec.dumps(value), ignore, secret) if secret else ""


def digest_secret_json(question_id: str, value: str, ignore: Sequence[str], secret: Sequence[str]) -> str:
    """The same of the JSON text."""
    if not hide_parts(_parse_json(value), secret)[1]:
        return ""
    return hashlib.sha256(f"{question_id}\n{canonical_form(value, '', None, ignore)}".encode()).hexdigest()


def canonical_form(
    value: str, message: str, schema: str | None, ignore: Sequence[str], secret: Sequence[str] = ()
) -> str:
    """What the question shows, without the parts that may differ, in its form."""
    parts: dict[str, Any] = {}
    if "message" not in ignore:
        parts["message"] = _replace_surrogates(message)
    if schema is not None and "schema" not in ignore:
        parts["schema"] = _parse_json(schema)
    if "value" not in ignore:
        read, _ = hide_parts(_parse_json(value), secret)
        for pointer in ignore:
            if pointer.startswith("/"):
                _remove_path(read, [t.replace("~1", "/").replace("~0", "~") for t in pointer[1:].split("/")])
        parts["value"] = read
    return _write_canonical(parts)


def _parse_json(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=_build_object)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_replace_surrogates(key): value for key, value in pairs}


def _replace_surrogates(text: str) -> str:
    return _ALONE.sub("\ufffd", text)


def _remove_path(value: Any, path: list[str]) -> None:
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and first in value:
        if rest:
            _remove_path(value[first], rest)
        else:
            del value[first]
    elif isinstance(value, list) and _INDEX.fullmatch(first) and int(first) < len(value):
        if rest:
            _remove_path(value[int(first)], rest)
        else:
            value[int(first)] = None


def _write_canonical(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote_text(k)}:{_write_canonical(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write_canonical, value)) + "]"
    if isinstance(value, _Number):
        return _format_number(value)
    if isinstance(value, str):
        return _quote_text(_replace_surrogates(value))
    return json.dumps(value)


def _quote_text(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda m: _SHORT.get(m[0]) or f"\\u{ord(m[0]):04x}", text) + '"'


def _format_number(text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no number of JSON")
    minus, whole, fraction, sign, exponent = (part or "" for part in match.groups())
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"
    if len(exponent.lstrip("0")) > _LONGEST_EXPONENT:
        return str(text)
    kept = digits.rstrip("0")
    power = int(f"{sign}{exponent or 0}") + len(digits) - len(kept) - len(fraction)
    return f"{minus}{kept}" + (f"e{power}" if power else "")

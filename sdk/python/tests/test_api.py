"""graphd has what LangGraph has, under the same names and parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import public_names

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("api.json").read_text())
HERE = public_names.read("graphd")


@pytest.mark.parametrize("module", EXPECTED["names"])
def test_names(module: str) -> None:
    assert HERE["names"][module] == EXPECTED["names"][module]


@pytest.mark.parametrize("method", EXPECTED["methods"])
def test_parameters(method: str) -> None:
    """graphd may have more, behind those that LangGraph has."""
    here, there = HERE["methods"][method], EXPECTED["methods"][method]
    assert [p for p in here if p in there] == there


@pytest.mark.parametrize("kind", EXPECTED["fields"])
def test_fields(kind: str) -> None:
    assert HERE["fields"][kind] == EXPECTED["fields"][kind]

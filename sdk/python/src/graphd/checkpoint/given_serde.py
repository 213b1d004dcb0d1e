"""The serializer that a program of LangGraph gives to a saver, where the server makes bytes of values."""

from __future__ import annotations

import warnings

from graphd.errors import IgnoredSerializer
from graphd.packages import imported_attribute


def check_serde(serde: object) -> None:
    """Accepts the serializer that LangGraph's savers have by default, which changes nothing here.

    IgnoredSerializer warns of one that may pickle. Any other may encrypt: NotImplementedError.
    """
    if serde is None:
        return
    if type(serde) is not imported_attribute("langgraph.checkpoint.serde.jsonplus", "JsonPlusSerializer"):
        raise NotImplementedError(
            f"serde: graphd sends values to its server as JSON, and does not call {type(serde).__name__}; what it "
            "would encrypt would be stored readable. Instead: leave serde out, and have the server encrypt with serve "
            "--encryption-keys FILE (docs/encryption.md). Or run the graph on LangGraph with "
            "graphd.checkpoint.langgraph.GraphdSaver(serde=…), which calls it"
        )
    if getattr(serde, "pickle_fallback", False):
        message = "serde: graphd pickles nothing; a value without a JSON form is an error of its node"
        warnings.warn(message, IgnoredSerializer, stacklevel=3)


__all__ = ["check_serde"]

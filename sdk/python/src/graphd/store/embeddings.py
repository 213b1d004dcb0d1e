"""Functions that make vectors of texts, and how near two vectors are."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from graphd.threads import run_in_thread

Vector = list[float]
EmbeddingsFunc = Callable[[Sequence[str]], list[Vector]]
AEmbeddingsFunc = Callable[[Sequence[str]], Awaitable[list[Vector]]]


@runtime_checkable
class Embeddings(Protocol):
    """What makes vectors of texts; LangChain's embeddings do."""

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """A vector for each text."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a query."""

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """Like embed_documents."""

    async def aembed_query(self, text: str) -> Vector:
        """Like embed_query."""


class FunctionEmbeddings:
    """A plain or an async function as embeddings."""

    def __init__(self, function: EmbeddingsFunc | AEmbeddingsFunc) -> None:
        self._function: Callable[[Sequence[str]], Any] = function
        call = getattr(function, "__call__", None)  # noqa: B004 - it may be async where the object is not
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """A vector for each text; ValueError if the function is async."""
        if self._is_async:
            raise ValueError("the embeddings function is async: use aput, asearch and abatch")
        return list(self._function(texts))

    def embed_query(self, text: str) -> Vector:
        """The vector of a query; ValueError if the function is async."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """Like embed_documents; a plain function runs in a thread."""
        if self._is_async:
            return list(await self._function(texts))
        return await run_in_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> Vector:
        """Like embed_query."""
        return (await self.aembed_documents([text]))[0]


def ensure_embeddings(embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None) -> Embeddings:
    """Embeddings of an object, a function, or a name such as ``"openai:text-embedding-3-small"``.

    ValueError is raised for None, and for a name when LangChain is not installed; TypeError for anything else.
    """
    if embed is None:
        raise ValueError("index['embed'] is missing: give a function, embeddings, or the name of a model")
    if isinstance(embed, str):
        return _load_embeddings(embed)
    if hasattr(embed, "embed_documents"):
        return embed  # type: ignore[return-value]
    if not callable(embed):
        raise TypeError(f"index['embed'] is {embed!r}; want a function, embeddings, or the name of a model")
    return FunctionEmbeddings(embed)


def _load_embeddings(name: str) -> Embeddings:
    try:
        load = importlib.import_module("langchain.embeddings").init_embeddings
    except (ImportError, AttributeError):
        text = f"index['embed'] is {name!r}: a model by its name needs langchain; or give a function or embeddings"
        raise ValueError(text) from None
    found: Embeddings = load(name)
    return found


def compute_similarity(left: Vector, right: Vector) -> float:
    """The cosine of the angle between two vectors; 0 when one has no length."""
    lengths = math.hypot(*left) * math.hypot(*right)
    return sum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


__all__ = ["AEmbeddingsFunc", "Embeddings", "EmbeddingsFunc", "Vector", "compute_similarity", "ensure_embeddings"]

"""What stores hold, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

Namespace = tuple[str, ...]
NamespacePath = tuple[str, ...]
"""A namespace in which ``"*"`` stands for any label."""
NamespaceMatchType = Literal["prefix", "suffix"]


class Item:
    """A value with its place and its times."""

    __slots__ = ("created_at", "key", "namespace", "updated_at", "value")

    def __init__(
        self,
        *,
        value: dict[str, Any],
        key: str,
        namespace: Namespace,
        created_at: datetime | str,
        updated_at: datetime | str,
    ) -> None:
        self.value, self.key, self.namespace = value, key, tuple(namespace)
        self.created_at, self.updated_at = _read_time(created_at), _read_time(updated_at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and Item.dict(self) == Item.dict(other)

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.dict().items())})"

    def dict(self) -> dict[str, Any]:
        """All of it as plain data; times are ISO texts."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


class SearchItem(Item):
    """An item that was found; ``score`` says how near it is to the query, None without one."""

    __slots__ = ("score",)

    def __init__(
        self,
        namespace: Namespace,
        key: str,
        value: dict[str, Any],
        created_at: datetime | str,
        updated_at: datetime | str,
        score: float | None = None,
    ) -> None:
        super().__init__(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)
        self.score = score

    def dict(self) -> dict[str, Any]:
        """All of it as plain data, with the score."""
        return super().dict() | {"score": self.score}


def _read_time(given: datetime | str) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


class GetOp(NamedTuple):
    """Reads an item."""

    namespace: Namespace
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """Finds items below a namespace. See BaseStore.search."""

    namespace_prefix: Namespace
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class MatchCondition(NamedTuple):
    """A pattern that a namespace begins or ends with."""

    match_type: NamespaceMatchType
    path: NamespacePath


class ListNamespacesOp(NamedTuple):
    """Lists namespaces that meet all conditions, cut off below a depth."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


class PutOp(NamedTuple):
    """Writes an item; a value of None deletes it. See BaseStore.put."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]
    ttl: float | None = None
    """Minutes."""


Op = GetOp | SearchOp | PutOp | ListNamespacesOp
Result = Item | list[Item] | list[SearchItem] | list[Namespace] | None

__all__ = [
    "GetOp",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "Namespace",
    "NamespaceMatchType",
    "NamespacePath",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
]

"""The interface of stores, under LangGraph's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from graphd.store.embeddings import AEmbeddingsFunc, Embeddings, EmbeddingsFunc, ensure_embeddings
from graphd.store.namespaces import InvalidNamespaceError, check_labels, check_new_namespace, validate_op_namespace
from graphd.store.operations import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    NamespaceMatchType,
    NamespacePath,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from graphd.store.paths import get_text_at_path, tokenize_path

Index = Literal[False] | list[str] | None


class NotProvided:
    """Tells an argument that was left out from None."""

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_PROVIDED = NotProvided()


class TTLConfig(TypedDict, total=False):
    """How long the items of a store live; times are in minutes."""

    refresh_on_read: bool
    omit_expired: bool
    default_ttl: float | None
    sweep_interval_minutes: int | None


class IndexConfig(TypedDict, total=False):
    """How a store finds items by meaning.

    ``embed`` makes vectors of ``dims`` numbers; ``fields`` are the paths whose texts are embedded, ``["$"]`` (the
    whole value) if left out.
    """

    dims: int
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str
    fields: list[str] | None


class BaseStore(ABC):
    """Values under namespaces and keys, shared by all threads.

    A namespace is a tuple of texts. An implementation defines ``batch`` and ``abatch``; all other methods call them.
    One that lets items expire sets ``supports_ttl``, and perhaps ``ttl_config``.

    InvalidNamespaceError, a ValueError, is raised for a namespace that is none.
    """

    supports_ttl: bool = False
    ttl_config: TTLConfig | None = None

    __slots__ = ("__weakref__",)

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations, and returns their results in the same order."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like batch."""

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """The item of a key, None when there is none."""
        return self.batch([self._get_op(namespace, key, refresh_ttl)])[0]  # type: ignore[return-value]

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """The items in a namespace and below it.

        ``filter`` compares keys of the values: ``{"color": "red", "size": {"$gte": 3}}``, with ``$eq``, ``$ne``,
        ``$gt``, ``$gte``, ``$lt`` and ``$lte``. ``query`` puts those first that are nearest in meaning, in a store
        with an index.
        """
        op = self._search_op(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return self.batch([op])[0]  # type: ignore[return-value]

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Index = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Writes an item.

        ``index`` says which paths are embedded, False for none; None leaves it to the store. ``ttl`` are minutes;
        NotImplementedError is raised by a store whose items don't expire.
        """
        self.batch([self._put_op(namespace, key, value, index, ttl)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Removes an item if there is one."""
        self.batch([self._delete_op(namespace, key)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Namespaces in order; ``"*"`` in ``prefix`` and ``suffix`` stands for any label.

        ``max_depth`` cuts deeper ones off.
        """
        return self.batch([self._list_op(prefix, suffix, max_depth, limit, offset)])[0]  # type: ignore[return-value]

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Like get."""
        return (await self.abatch([self._get_op(namespace, key, refresh_ttl)]))[0]  # type: ignore[return-value]

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Like search."""
        op = self._search_op(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return (await self.abatch([op]))[0]  # type: ignore[return-value]

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        index: Index = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Like put."""
        await self.abatch([self._put_op(namespace, key, value, index, ttl)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """Like delete."""
        await self.abatch([self._delete_op(namespace, key)])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Like list_namespaces."""
        return (await self.abatch([self._list_op(prefix, suffix, max_depth, limit, offset)]))[0]  # type: ignore[return-value]

    # The operations of both forms.

    def _get_op(self, namespace: Namespace, key: str, refresh: bool | None) -> GetOp:
        check_labels(namespace)
        return GetOp(tuple(namespace), str(key), self._refreshes(refresh))

    def _search_op(
        self,
        prefix: Namespace,
        query: str | None,
        wanted: dict[str, Any] | None,
        limit: int,
        offset: int,
        refresh: bool | None,
    ) -> SearchOp:
        check_labels(prefix)
        return SearchOp(tuple(prefix), wanted, limit, offset, query, self._refreshes(refresh))

    def _put_op(
        self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Index, ttl: float | NotProvided | None
    ) -> PutOp:
        check_new_namespace(namespace)
        if isinstance(ttl, NotProvided):
            ttl = (self.ttl_config or {}).get("default_ttl")
        elif ttl is not None and not self.supports_ttl:
            raise NotImplementedError(f"items of {type(self).__name__} don't expire: leave ttl out")
        return PutOp(tuple(namespace), str(key), value, index, ttl)

    @staticmethod
    def _delete_op(namespace: Namespace, key: str) -> PutOp:
        check_labels(namespace)
        return PutOp(tuple(namespace), str(key), None)

    @staticmethod
    def _list_op(
        prefix: NamespacePath | None, suffix: NamespacePath | None, max_depth: int | None, limit: int, offset: int
    ) -> ListNamespacesOp:
        check_labels(prefix or ())
        check_labels(suffix or ())
        conditions = [MatchCondition("prefix", prefix)] if prefix else []
        conditions += [MatchCondition("suffix", suffix)] if suffix else []
        return ListNamespacesOp(tuple(conditions), max_depth, limit, offset)

    def _refreshes(self, given: bool | None) -> bool:
        return (self.ttl_config or {}).get("refresh_on_read", True) if given is None else given


__all__ = [
    "NOT_PROVIDED",
    "BaseStore",
    "Embeddings",
    "GetOp",
    "IndexConfig",
    "InvalidNamespaceError",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "NamespaceMatchType",
    "NamespacePath",
    "NotProvided",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
    "TTLConfig",
    "ensure_embeddings",
    "get_text_at_path",
    "tokenize_path",
    "validate_op_namespace",
]

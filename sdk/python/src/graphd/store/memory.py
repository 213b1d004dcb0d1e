"""A store in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from graphd.compatibility.imports import explain_absent_names
from graphd.store.base import BaseStore, IndexConfig
from graphd.store.checks import check_operations, kind_of
from graphd.store.embeddings import Vector, ensure_embeddings
from graphd.store.filters import passes_filter
from graphd.store.namespaces import matches_condition
from graphd.store.operations import GetOp, Item, ListNamespacesOp, Namespace, Op, PutOp, Result, SearchItem, SearchOp
from graphd.store.paths import WHOLE
from graphd.store.vector_index import Place, VectorIndex


class InMemoryStore(BaseStore):
    """Keeps items in this process: they end with it, and other workers don't see them.

    With ``index`` items are found by meaning: ``InMemoryStore(index={"dims": 3, "embed": function})``. The
    operations of a batch read what was there before it. Safe to use from several threads.
    """

    __slots__ = ("_index", "_items", "_lock", "embeddings", "index_config")

    def __init__(self, *, index: IndexConfig | None = None) -> None:
        self._lock = threading.Lock()
        self._items: dict[Namespace, dict[str, Item]] = {}
        self.index_config = index
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        fields = (index.get("fields") if index else None) or [WHOLE]
        self._index = VectorIndex(fields, index.get("dims") if index else None)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations; ValueError for one that is none, or for vectors of a wrong size."""
        operations = check_operations(ops)
        queries, texts = self._find_texts(operations)
        if self.embeddings is None:
            return self._carry_out(operations, {}, {})
        wanted = [self.embeddings.embed_query(text) for text in queries]
        held = self.embeddings.embed_documents(texts) if texts else []
        return self._carry_out(
            operations, self._index.check_vectors(queries, wanted), self._index.check_vectors(texts, held)
        )

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like batch."""
        operations = check_operations(ops)
        queries, texts = self._find_texts(operations)
        if self.embeddings is None:
            return self._carry_out(operations, {}, {})
        wanted = [await self.embeddings.aembed_query(text) for text in queries]
        held = await self.embeddings.aembed_documents(texts) if texts else []
        return self._carry_out(
            operations, self._index.check_vectors(queries, wanted), self._index.check_vectors(texts, held)
        )

    def _find_texts(self, ops: Sequence[Any]) -> tuple[list[str], list[str]]:
        """The texts of queries, and those of items, each once."""
        if self.embeddings is None:
            return [], []
        queries = [op.query for op in ops if kind_of(op) == "SearchOp" and op.query]
        texts = [text for op in ops if kind_of(op) == "PutOp" for text in self._index.find_texts(op)]
        return list(dict.fromkeys(queries)), list(dict.fromkeys(texts))

    def _carry_out(
        self, ops: Sequence[Any], queries: Mapping[str, Vector], texts: Mapping[str, Vector]
    ) -> list[Result]:
        with self._lock:
            results = [self._read(op, queries) for op in ops]
            for op in ops:
                if kind_of(op) == "PutOp":
                    self._write(op, texts)
            return results

    def _read(self, op: Any, queries: Mapping[str, Vector]) -> Result:
        match kind_of(op):
            case "GetOp":
                return self._get(op)
            case "SearchOp":
                return self._search(op, queries)
            case "ListNamespacesOp":
                return self._list(op)
        return None

    def _get(self, op: GetOp) -> Item | None:
        return self._items.get(tuple(op.namespace), {}).get(op.key)

    def _search(self, op: SearchOp, queries: Mapping[str, Vector]) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        found = [
            item
            for namespace, items in self._items.items()
            if namespace[: len(prefix)] == prefix
            for item in items.values()
            if passes_filter(item.value, op.filter)
        ]
        scores: dict[Place, float] = {}
        if op.query and op.query in queries:
            scores = self._index.compute_scores(queries[op.query], map(_place_of, found))
            found.sort(key=lambda item: -scores.get(_place_of(item), float("-inf")))
        shown = found[op.offset : op.offset + op.limit]
        return [_to_search_item(item, scores.get(_place_of(item))) for item in shown]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {
            namespace[: op.max_depth]
            for namespace in self._items
            if all(matches_condition(namespace, condition) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _write(self, op: PutOp, texts: Mapping[str, Vector]) -> None:
        namespace = tuple(op.namespace)
        self._index.remove((namespace, op.key))
        if op.value is None:
            self._delete(namespace, op.key)
            return
        items, now = self._items.setdefault(namespace, {}), datetime.now(timezone.utc)
        created = items[op.key].created_at if op.key in items else now
        items[op.key] = Item(value=dict(op.value), key=op.key, namespace=namespace, created_at=created, updated_at=now)
        if self.embeddings is not None:
            self._index.add((namespace, op.key), [texts[text] for text in self._index.find_texts(op)])

    def _delete(self, namespace: Namespace, key: str) -> None:
        items = self._items.get(namespace, {})
        items.pop(key, None)
        if not items:
            self._items.pop(namespace, None)


def _place_of(item: Item) -> Place:
    return item.namespace, item.key


def _to_search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = ["InMemoryStore"]
